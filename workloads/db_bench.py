"""The family of db_bench: steps that RocksDB's and LevelDB's benchmark program runs, by name.

Nothing is started here, and no command line is written: see `workloads/db_bench_words.py`. What
each step stands for is told in docs/rocksdb.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from workloads.db_bench_flags import RATE
from workloads.workload import LSM_ENGINES, DatasetKind, Group, Tool, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workloads.db_bench_flags import Flag

_ROCKSDB: Final = frozenset({"rocksdb"})
#: Compaction styles, as the flag has them.
LEVELED: Final = 0
UNIVERSAL: Final = 1


@dataclass(frozen=True, kw_only=True)
class Step:
    """One measured benchmark of db_bench."""

    #: As db_bench calls it.
    benchmark: str
    operation: str
    description: str
    #: What follows it in the same process, before the statistics are printed.
    then: tuple[str, ...] = ()
    #: Flags that a config may set otherwise.
    defaults: Mapping[str, Flag] = field(default_factory=dict)
    #: Flags without which it would not be what its name says.
    flags: Mapping[str, Flag] = field(default_factory=dict)
    #: Operations of all threads together as a share of the rows; None where seconds bound it.
    work: float | None = None
    #: It makes the database anew.
    fresh: bool = False
    #: One more thread writes beside it, at a limited rate.
    writer: bool = False
    engines: frozenset[str] = LSM_ENGINES
    #: False where it only prepares the steps after it.
    reported: bool = True

    @property
    def writes(self) -> bool:
        """Whether it leaves the database other than it was."""
        return self.fresh or self.writer or self.work is not None


#: The field's rate of the background writer, 2 MB/s.
_WRITER: Final[Mapping[str, Flag]] = {RATE: 2 * 1024**2}
_NEXTS: Final[Mapping[str, Flag]] = {"seek_nexts": 10}
_RANGE: Final = "seek and 10 steps"

#: Every step by the name of its workload without a chain.
STEPS: Final[Mapping[str, Step]] = {
    "fillseq": Step(
        benchmark="fillseq",
        operation="put",
        description="Puts every key in order with one thread, without a write-ahead log.",
        # A sorted vector is the cheapest memtable for keys that come in order.
        flags={
            "threads": 1,
            "disable_wal": True,
            "memtablerep": "vector",
            "allow_concurrent_memtable_write": False,
            "min_level_to_compress": 0,
        },
        work=1.0,
        fresh=True,
    ),
    "readrandom": Step(benchmark="readrandom", operation="get", description="Gets a uniform key."),
    "multireadrandom": Step(
        benchmark="multireadrandom",
        operation="get",
        description="Gets 10 uniform keys with one MultiGet.",
        flags={"batch_size": 10, "multiread_batched": True},
        engines=_ROCKSDB,
    ),
    "fwdrange": Step(
        benchmark="seekrandom",
        operation=_RANGE,
        description="Seeks a uniform key and reads the next 10.",
        defaults=_NEXTS,
        engines=_ROCKSDB,
    ),
    "revrange": Step(
        benchmark="seekrandom",
        operation=_RANGE,
        description="Seeks a uniform key and reads the 10 before it.",
        defaults=_NEXTS,
        flags={"reverse_iterator": True},
        engines=_ROCKSDB,
    ),
    "readwhilewriting": Step(
        benchmark="readwhilewriting",
        operation="get",
        description="Gets a uniform key while one more thread overwrites 2 MB/s.",
        defaults=_WRITER,
        writer=True,
    ),
    "fwdrangewhilewriting": Step(
        benchmark="seekrandomwhilewriting",
        operation=_RANGE,
        description="As fwdrange, while one more thread overwrites 2 MB/s.",
        defaults={**_NEXTS, **_WRITER},
        writer=True,
        engines=_ROCKSDB,
    ),
    "revrangewhilewriting": Step(
        benchmark="seekrandomwhilewriting",
        operation=_RANGE,
        description="As revrange, while one more thread overwrites 2 MB/s.",
        defaults={**_NEXTS, **_WRITER},
        flags={"reverse_iterator": True},
        writer=True,
        engines=_ROCKSDB,
    ),
    "overwritesome": Step(
        benchmark="overwrite",
        operation="put",
        description="Overwrites uniform keys, a tenth as many as there are: what lies above the "
        "last level is in no order afterwards.",
        work=0.1,
        engines=_ROCKSDB,
        reported=False,
    ),
    "overwrite": Step(
        benchmark="overwrite",
        operation="put",
        description="Overwrites uniform keys, as many as there are.",
        work=1.0,
    ),
    "overwriteandwait": Step(
        benchmark="overwrite",
        operation="put",
        description="As overwrite, and then waits until compaction has nothing left to do, so "
        "that write amplification is of all that was written.",
        then=("flush", "waitforcompaction"),
        work=1.0,
        engines=_ROCKSDB,
    ),
}

#: Steps of a sequence on one database, in the field's order. It leaves out the reads on most days,
#: because what they cost depends on the shape in which the tree came to rest.
_READS: Final = ("readrandom", "fwdrange", "multireadrandom")
_WRITES: Final = (
    "overwritesome",
    "revrangewhilewriting",
    "fwdrangewhilewriting",
    "readwhilewriting",
)
#: Compaction style of each chain. Universal ends without the wait as well, for versions before 8.6.
CHAINS: Final = {"leveled": LEVELED, "universal": UNIVERSAL}
_IN_CHAIN: Final = ("fillseq", *_READS, *_WRITES, "overwrite", "overwriteandwait")


def _workload(name: str, step: Step, chain: str = "") -> Workload:
    # LevelDB knows one way of compacting.
    engines = step.engines & _ROCKSDB if chain == "universal" else step.engines
    return Workload(
        name=f"{chain}.{name}" if chain else name,
        group=Group.LSM,
        script=",".join((step.benchmark, *step.then)),
        operation=step.operation,
        writes=step.writes,
        prepared=False,
        description=step.description,
        tool=Tool.DB_BENCH,
        dataset=DatasetKind.LSM,
        engines=engines,
        chain=chain,
        reported=step.reported,
    )


WORKLOADS: Final[tuple[Workload, ...]] = (
    # A step that makes the database anew needs no snapshot, and one that prepares no number.
    *(
        _workload(name, step)
        for name, step in STEPS.items()
        if name not in {"fillseq", "overwritesome"}
    ),
    *(_workload(name, STEPS[name], chain) for chain in CHAINS for name in _IN_CHAIN),
)


def _sequence(chain: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{chain}.{name}" for name in names)


SUITES: Final[dict[str, tuple[str, ...]]] = {
    "leveled-6": _sequence("leveled", "fillseq", *_WRITES, "overwriteandwait"),
    "leveled-9": _sequence("leveled", "fillseq", *_READS, *_WRITES, "overwriteandwait"),
    "universal-6": _sequence("universal", "fillseq", *_WRITES, "overwriteandwait"),
    "universal-no-wait-6": _sequence("universal", "fillseq", *_WRITES, "overwrite"),
    # Side by side from the snapshot instead of one after the other.
    "lsm-4": ("fwdrangewhilewriting", "revrangewhilewriting", "readwhilewriting", "overwrite"),
    "leveldb-3": ("readrandom", "readwhilewriting", "overwrite"),
}


def step_of(workload: Workload) -> Step:
    """Return what a workload of this family runs."""
    return STEPS[workload.name.rpartition(".")[2]]


def batch_of(step: Step) -> int:
    """Return how many operations one call of the library does."""
    return int(step.flags.get("batch_size", 1))
