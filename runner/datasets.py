"""Datasets: loaded once, kept as a snapshot, restored for every start.

A snapshot is a data directory of a server that was stopped cleanly. Its digest covers everything
that decides its bytes: engine data format, tables, rows, load script, seed, and the options that
change the format. Every start of every commit begins from the same bytes. How snapshots are kept,
checked and copied is not decided here (`runner/snapshots.py`).
"""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from results.document import Dataset
from runner import sandbox, shell, snapshots, sysbench
from runner.errors import DatasetError
from runner.eviction import Estimate, gb
from runner.sandbox import INSIDE, Bind, Sandbox
from runner.servers import mysql_family
from runner.settings import DATASETS_SIZE
from runner.snapshots import Request, SnapshotStore
from workloads.catalog import SCRIPTS
from workloads.plan import digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pydantic import JsonValue

    from runner.servers.mysql_family import RunningServer, ServerSpec
    from runner.settings import Home
    from runner.snapshots import Restored, Snapshot
    from workloads.plan import DatasetPlan

#: Options that decide how data files are written; others may differ between users of a snapshot.
_FORMAT_OPTIONS: Final = (
    "character_set_server",
    "collation_server",
    "innodb_checksum_algorithm",
    "innodb_data_file_path",
    "innodb_default_row_format",
    "innodb_file_per_table",
    "innodb_log_file_size",
    "innodb_log_files_in_group",
    "innodb_page_size",
    "innodb_redo_log_capacity",
    "innodb_undo_tablespaces",
    "lower_case_table_names",
)
_VERSION: Final = re.compile(r"Ver (\d+)\.(\d+)\.")
_COUNT: Final = re.compile(r"^rows of (\S+): (\d+)$", re.MULTILINE)


def server_version(spec: ServerSpec) -> str:
    """Return what the server program says about its version.

    Raises:
        DatasetError: It does not run or does not say.
    """
    words = [str(INSIDE / "artifact" / spec.program), "--no-defaults", "--version"]
    binds = mysql_family.program_view(spec)
    done = Sandbox(binds=binds, limits=spec.limits).run(words, timeout_s=60)
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


@contextmanager
def ready(
    dataset: Dataset,
    plan: DatasetPlan,
    spec: ServerSpec,
    home: Home,
    *,
    bytes_max: int = DATASETS_SIZE,
    verify: bool = False,
) -> Iterator[Snapshot]:
    """Give the dataset's snapshot, loaded if it is not there, and keep it while the block runs.

    Its `restore` makes the data directories of a start, `warnings` says what was repaired.

    Args:
        dataset: What `describe` returned for the same plan and server.
        plan: Tables and rows.
        spec: The server that loads.
        home: Where snapshots are kept.
        bytes_max: Size that all of them together may have.
        verify: Read every byte of the snapshot now, even if that is not due.

    Raises:
        DatasetError: Loading failed, or there is no room; carries the arithmetic.
        ServerError: The server that loads did not start or stop.
    """
    store = SnapshotStore(
        home.folder("datasets"), bytes_max=bytes_max, reserve=spec.limits.disk_reserve.value
    )
    request = Request(
        key=dataset.digest,
        make=lambda data: _load(data, dataset, plan, spec),
        estimate=Estimate(
            allocated=mysql_family.data_bytes(spec, tables=plan.tables, rows=plan.rows),
            because=f"{plan.tables} x {plan.rows} rows, {gb(mysql_family.redo_bytes(spec))} of "
            "redo log",
        ),
    )
    with store.hold(request, verify=verify) as snapshot:
        yield snapshot


def ensure(dataset: Dataset, plan: DatasetPlan, spec: ServerSpec, home: Home) -> Path:
    """Return the folder of the dataset's snapshot, loading it if it is not there yet.

    Afterwards it may be evicted at any time; `ready` keeps it.

    Raises:
        DatasetError: Making the data directory or loading failed.
        ServerError: The server that loads did not start or stop.
    """
    with ready(dataset, plan, spec, home) as snapshot:
        return snapshot.data


def restore(snapshot: Path, into: Path) -> Restored:
    """Copy a snapshot to `into`, sharing blocks where the file system can.

    Raises:
        DatasetError: The copy failed, for instance because the disk is full.
    """
    return snapshots.restore(snapshot.parent, [into])


def _load(
    data: Path, dataset: Dataset, plan: DatasetPlan, spec: ServerSpec
) -> dict[str, JsonValue]:
    """Fill an empty folder with the dataset; return what the manifest says about it.

    Equal plans load equal rows in equal order: one connection, rows from a fixed seed.
    """
    sandbox.hand_over(data)
    mysql_family.initialise(spec, data)
    # A full shutdown leaves nothing to purge, merge or recover in the snapshot.
    quiet = mysql_family.with_options(spec, {"innodb_fast_shutdown": 0})
    with mysql_family.running(quiet, data, cpus=()) as server:
        sysbench.load(server, plan)
        rows = count_rows(server, tables=plan.tables)
    check_rows(rows, plan)
    return {
        "dataset": dataset.model_dump(mode="json"),
        "server_version": server.version,
        "rows": dict(rows),
    }


def check_rows(rows: Mapping[str, int], plan: DatasetPlan) -> None:
    """Check that every table has its rows.

    Raises:
        DatasetError: One has not; a server that loses rows must not be measured.
    """
    if list(rows.values()) != [plan.rows] * plan.tables:
        raise DatasetError(
            "dataset",
            f"{plan.tables} x {plan.rows} rows were loaded, and the server counts {dict(rows)}",
        )


def count_rows(server: RunningServer, *, tables: int) -> dict[str, int]:
    """Return the rows of each table as the server counts them.

    Raises:
        DatasetError: It could not be asked; carries what the client printed.
    """
    words = [
        shell.require("sysbench", package="sysbench"),
        f"{INSIDE}/scripts/count.lua",
        "--db-driver=mysql",
        f"--mysql-socket={INSIDE}/run/{server.socket.name}",
        "--mysql-user=root",
        "--mysql-db=mysql",
        f"--tables={tables}",
        "count",
    ]
    view = Sandbox(
        binds=(
            Bind(host=SCRIPTS, inside="scripts"),
            Bind(host=server.socket.parent, inside="run"),
        ),
        environment={"LUA_PATH": f"{INSIDE}/scripts/?.lua"},
    )
    done = view.run(words, timeout_s=sysbench.LOAD_TIMEOUT_S)
    if not done.ok:
        text = (done.stdout + done.stderr)[-shell.TAIL_BYTES :]
        raise DatasetError("dataset", "the loaded rows could not be counted", text)
    return {name: int(count) for name, count in _COUNT.findall(done.stdout)}
