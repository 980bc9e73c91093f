"""Datasets: loaded once, kept as a snapshot, restored for every start.

A snapshot is a data directory of a server that was stopped cleanly. Its digest covers everything
that decides its bytes: engine data format, tables, rows, load script, seed, and the options that
change the format. Every start of every commit begins from the same bytes.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
import shutil
from typing import TYPE_CHECKING, Final

from results.document import Dataset
from runner import sandbox, shell, sysbench
from runner.errors import DatasetError
from runner.sandbox import INSIDE, Sandbox
from runner.servers import mysql_family
from workloads.catalog import SCRIPTS
from workloads.plan import digest

if TYPE_CHECKING:
    from pathlib import Path

    from runner.servers.mysql_family import ServerSpec
    from runner.settings import Home
    from workloads.plan import DatasetPlan

MANIFEST: Final = "forkwatch-dataset.json"
COPY_TIMEOUT_S: Final = 3600
#: Options that decide how data files are written; others may differ between users of a snapshot.
_FORMAT_OPTIONS: Final = (
    "character_set_server",
    "collation_server",
    "innodb_checksum_algorithm",
    "innodb_data_file_path",
    "innodb_default_row_format",
    "innodb_log_file_size",
    "innodb_page_size",
    "innodb_undo_tablespaces",
    "lower_case_table_names",
)
_VERSION: Final = re.compile(r"Ver (\d+)\.(\d+)\.")


def server_version(spec: ServerSpec) -> str:
    """Return what the server program says about its version.

    Raises:
        DatasetError: It does not run or does not say.
    """
    words = [str(INSIDE / "artifact" / spec.program), "--no-defaults", "--version"]
    binds = mysql_family.program_view(spec)
    done = shell.run(Sandbox(binds=binds).command(words), timeout_s=60)
    if not done.ok or _VERSION.search(done.stdout) is None:
        raise DatasetError(
            "start", "the server does not tell its version", done.stdout + done.stderr
        )
    return done.stdout.strip()[:500]


def describe(name: str, plan: DatasetPlan, spec: ServerSpec) -> Dataset:
    """Return the identity of the dataset that `spec` would use."""
    version = _VERSION.search(server_version(spec))
    assert version is not None, "server_version checks this"
    engine_format = f"{spec.engine}-{version.group(1)}.{version.group(2)}"
    options = {key: spec.options[key] for key in _FORMAT_OPTIONS if key in spec.options}
    parts = (
        engine_format,
        digest(plan),
        json.dumps(options, sort_keys=True),
        str(sysbench.LOAD_SEED),
        *[(SCRIPTS / script).read_text() for script in ("schema.lua", "load.lua")],
    )
    return Dataset(
        name=name,
        digest=hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:32],
        engine_format=engine_format,
        tables=plan.tables,
        rows_per_table=plan.rows,
    )


def ensure(dataset: Dataset, plan: DatasetPlan, spec: ServerSpec, home: Home) -> Path:
    """Return the folder of the dataset's snapshot, loading it if it is not there yet.

    Raises:
        DatasetError: Making the data directory or loading failed.
        ServerError: The server that loads did not start or stop.
    """
    folder = home.folder("datasets") / dataset.digest
    with (home.folder("datasets") / f"{dataset.digest}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / MANIFEST).exists():
            return folder / "data"
        partial = folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        (partial / "data").mkdir(parents=True)
        sandbox.hand_over(partial / "data")
        mysql_family.initialise(spec, partial / "data")
        # A full shutdown leaves nothing to purge, merge or recover in the snapshot.
        quiet = mysql_family.with_options(spec, {"innodb_fast_shutdown": 0})
        with mysql_family.running(quiet, partial / "data", cpus=()) as server:
            sysbench.load(server, plan)
        (partial / MANIFEST).write_text(dataset.model_dump_json(indent=2))
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    return folder / "data"


def restore(snapshot: Path, into: Path) -> None:
    """Copy a snapshot to `into`, sharing blocks where the file system can.

    Raises:
        DatasetError: The copy failed, for instance because the disk is full.
    """
    shutil.rmtree(into, ignore_errors=True)
    into.parent.mkdir(parents=True, exist_ok=True)
    words = ["cp", "--archive", "--reflink=auto", str(snapshot), str(into)]
    done = shell.run(words, timeout_s=COPY_TIMEOUT_S)
    if not done.ok:
        raise DatasetError("dataset", "the snapshot could not be restored", done.stderr)
