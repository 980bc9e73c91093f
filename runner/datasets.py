"""Datasets: loaded once, kept as a snapshot, restored for every start.

A snapshot is a data directory of a server that was stopped cleanly. Its digest covers everything
that decides its bytes: engine data format, tables, rows, load script, seed, and the options that
change the format. Every start of every commit begins from the same bytes. How snapshots are kept,
checked and copied is not decided here (`runner/snapshots.py`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from results.document import Dataset
from runner import loaders, sandbox, snapshots, sysbench
from runner.clients import loader_of
from runner.errors import DatasetError
from runner.eviction import Estimate, gb
from runner.fleet_cache.shared_datasets import SharedDataset
from runner.load_facts import LoadFacts, measured, peak_rss_bytes
from runner.servers.engines import engine_of
from runner.servers.settle import LOADED_TIMEOUT_S
from runner.settings import DATASETS_SIZE
from runner.snapshots import Request, SnapshotStore
from runner.trees import allocated_bytes
from workloads import tpcc
from workloads.plan import digest
from workloads.workload import MYSQL_FAMILY, DatasetKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pydantic import JsonValue

    from results.slice import SideName
    from runner.fleet_cache.cache import FleetCache
    from runner.servers.engine import RunningServer, ServerSpec
    from runner.settings import Home
    from runner.snapshots import Restored, Snapshot
    from workloads.plan import DatasetPlan

#: A series is known by so many characters of its dataset's digest (`RunDocument.series`).
_SERIES_LENGTH: Final = 12
_DIGEST_LENGTH: Final = 32
#: Engine and release series at the beginning of a data format.
_SERIES: Final = re.compile(r"[a-z]+-[0-9]+(?:\.[0-9]{1,3}(?=\.|$))?")
#: Where servers of strangers load what they begin from. One that lies about its release would fill
#: the place of a dataset that the branch will look for once it gets there.
OUTSIDE: Final = "datasets-outside"


def server_version(spec: ServerSpec) -> str:
    """Return what the server program says about its version.

    Raises:
        DatasetError: It does not run or does not say.
    """
    return engine_of(spec.engine).version(spec)


def describe(name: str, plan: DatasetPlan, spec: ServerSpec) -> Dataset:
    """Return the identity of the dataset that `spec` would use.

    The beginning of its digest stays the same over the patches of a release series, so that a
    series goes on; the rest says whose bytes they are.

    Raises:
        DatasetError: The server program does not run or does not say its version.
    """
    engine = engine_of(spec.engine)
    data_format = engine.data_format(spec)
    series = _SERIES.match(data_format)
    rows = (
        series.group() if series else data_format,
        digest(plan),
        json.dumps(dict(engine.format_options(spec)), sort_keys=True),
        *loaders.identity(plan.kind),
    )
    ends = _hash(rows)[:_SERIES_LENGTH], _hash((*rows, data_format))
    return Dataset(
        name=name,
        digest="".join(ends)[:_DIGEST_LENGTH],
        engine_format=data_format,
        tables=plan.tables,
        rows_per_table=plan.rows,
    )


def _hash(parts: Sequence[str]) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()


@contextmanager
def ready(
    dataset: Dataset,
    plan: DatasetPlan,
    spec: ServerSpec,
    home: Home,
    *,
    bytes_max: int = DATASETS_SIZE,
    verify: bool = False,
    trusted: bool = True,
    cache: FleetCache | None = None,
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
        trusted: Whether later jobs may begin from what this server loads.
        cache: What other machines of the fleet have loaded, where they share it.

    Raises:
        DatasetError: Loading failed, or there is no room; carries the arithmetic.
        ServerError: The server that loads did not start or stop.
    """
    store = SnapshotStore(
        home.folder("datasets" if trusted else OUTSIDE),
        bytes_max=bytes_max,
        reserve=spec.limits.disk_reserve.value,
    )
    request = Request(
        key=dataset.digest,
        make=lambda data: _load(data, dataset, plan, spec),
        estimate=estimate(plan, spec),
        elsewhere=None if cache is None else SharedDataset(cache, dataset.digest),
    )
    with store.hold(request, verify=verify) as snapshot:
        yield snapshot


def estimate(plan: DatasetPlan, spec: ServerSpec) -> Estimate:
    """Return what loading the dataset will take on the disk, and why."""
    engine = engine_of(spec.engine)
    return Estimate(
        allocated=engine.data_bytes(spec, plan),
        because=f"{size_words(plan, spec.engine)}, {gb(engine.redo_bytes(spec))} of redo log",
    )


def size_words(plan: DatasetPlan, engine: str) -> str:
    """Return how large a dataset is in words, with the arithmetic where rows do not tell it."""
    if plan.kind is not DatasetKind.TPCC:
        return f"{plan.tables} x {plan.rows} rows"
    measured_as = f" ({tpcc.arithmetic(plan.scale)})" if engine in MYSQL_FAMILY else ""
    return f"{plan.scale} warehouses{measured_as}"


@contextmanager
def ready_sides(
    datasets: Mapping[SideName, Dataset],
    plan: DatasetPlan,
    specs: Mapping[SideName, ServerSpec],
    home: Home,
    *,
    bytes_max: int = DATASETS_SIZE,
    trusted: bool = True,
    cache: FleetCache | None = None,
) -> Iterator[dict[SideName, Snapshot]]:
    """Give each side's snapshot as `ready` does; sides with equal digests begin from the same one.

    The first of them is the one that loads.

    Raises:
        DatasetError, ServerError: As `ready`.
    """
    by_digest: dict[str, Snapshot] = {}
    with contextlib.ExitStack() as held:
        for side, dataset in datasets.items():
            if dataset.digest not in by_digest:
                one = ready(
                    dataset,
                    plan,
                    specs[side],
                    home,
                    bytes_max=bytes_max,
                    trusted=trusted,
                    cache=cache,
                )
                by_digest[dataset.digest] = held.enter_context(one)
        yield {side: by_digest[dataset.digest] for side, dataset in datasets.items()}


def formats_notes(datasets: Mapping[SideName, Dataset]) -> tuple[str, ...]:
    """Return what a reader should know of sides that could not begin from one snapshot."""
    if len({dataset.digest for dataset in datasets.values()}) < 2:  # noqa: PLR2004  one for both
        return ()
    formats = " and ".join(f"{side} {dataset.engine_format}" for side, dataset in datasets.items())
    return (f"each side began from data that it loaded itself ({formats}): formats differ",)


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


def load_facts(snapshot: Snapshot) -> LoadFacts | None:
    """Return what was measured when the snapshot was loaded; None for one of an older forkwatch."""
    return measured(snapshot.manifest.facts)


def _load(
    data: Path, dataset: Dataset, plan: DatasetPlan, spec: ServerSpec
) -> dict[str, JsonValue]:
    """Fill an empty folder with the dataset; return what the manifest says about it.

    Equal plans load equal rows in equal order: one connection, rows from a fixed seed.
    """
    engine = engine_of(spec.engine)
    sandbox.hand_over(data)
    engine.initialise(spec, data)
    with engine.running(spec, data, cpus=(), loading=True) as server:
        began = time.monotonic()
        took = loader_of(plan.kind).load(server, plan) or {}
        load_s = time.monotonic() - began
        rows = _checked(server, plan)
        settled = engine.settle(server, timeout_s=LOADED_TIMEOUT_S)
        peak = peak_rss_bytes(server.pids)
        stopping = time.monotonic()
    facts = LoadFacts(
        load_s=round(load_s, 3),
        rows_s=took.get("rows_s"),
        indexes_s=took.get("indexes_s"),
        rows=sum(rows.values()) if rows else plan.tables * plan.rows,
        settle_s=settled.seconds,
        startup_s=server.startup_s,
        shutdown_s=round(time.monotonic() - stopping, 3),
        disk_bytes=allocated_bytes(data),
        peak_rss_bytes=peak,
    )
    return {
        "dataset": dataset.model_dump(mode="json"),
        "server_version": server.version,
        "rows": dict(rows),
        "measured": facts.model_dump(mode="json"),
    }


def _checked(server: RunningServer, plan: DatasetPlan) -> dict[str, int]:
    """Return the rows of each table, all of them there and consistent.

    Raises:
        DatasetError: They are not; a server that loses rows must not be measured.
    """
    if plan.kind is DatasetKind.LSM:
        return {}
    rows = count_rows(server, plan)
    check_rows(rows, plan)
    if plan.kind is DatasetKind.TPCC:
        faults = tpcc.faults(lambda statement: server.engine.rows(server, statement))
        if faults:
            raise DatasetError("dataset", "the loaded data is inconsistent", "\n".join(faults))
    return rows


def check_rows(rows: Mapping[str, int], plan: DatasetPlan) -> None:
    """Check that every table has its rows.

    Raises:
        DatasetError: One has not; a server that loses rows must not be measured.
    """
    wrong = loaders.wrong_rows(rows, plan)
    if wrong:
        raise DatasetError("dataset", f"{wrong}, and the server counts {dict(rows)}")


def count_rows(server: RunningServer, plan: DatasetPlan) -> dict[str, int]:
    """Return the rows of each table as the server counts them.

    Raises:
        DatasetError: It could not be asked; carries what the client printed.
    """
    return sysbench.count_rows(server, plan)
