"""The command line of db_bench: a step and its circumstances in, the words after the program out.

Which flags are the field's, which are ours, and what a config may change is told in
docs/rocksdb.md. What must not be run is refused here with what to change.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from workloads.db_bench import CHAINS, STEPS, UNIVERSAL, step_of
from workloads.db_bench_flags import BASE, FORMAT_FREE, OURS, RATE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workloads.db_bench import Step
    from workloads.db_bench_flags import Flag
    from workloads.plan_datasets import DatasetPlan
    from workloads.workload import Workload

#: Bytes of a key; LevelDB's db_bench has no flag for it.
KEY_BYTES: Final = {"rocksdb": 20, "leveldb": 16}
#: Equal seeds load equal keys.
LOAD_SEED: Final = 20_260_101
#: Before it, waiting for universal compaction may never end (RocksDB issue 9275, pull 11727).
UNIVERSAL_WAITS: Final = (8, 6)
#: What leaves nothing in memory and nothing in level 0, and no compaction under way.
NORMALISE: Final = {
    "rocksdb": ("flush", "waitforcompaction", "compact0", "waitforcompaction"),
    "leveldb": ("compact",),
}
_VERSION: Final = re.compile(r"\b([0-9]{1,3})\.([0-9]{1,3})")
_WHOLE: Final = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """What decides a command line besides the step."""

    engine: str
    dataset: DatasetPlan
    #: The server config's.
    options: Mapping[str, Flag]
    threads: int = 1
    seed: int = 1


def refusal(workload: Workload, *, version: str, at: Circumstances) -> str:
    """Return why this workload must not be run so, and what to change; empty where it may."""
    mine = taken(at.options)
    if mine:
        return mine
    style = _whole(at.options, "compaction_style", 0)
    wanted = CHAINS.get(workload.chain, style)
    if style != wanted:
        return (
            f"{workload.name} belongs to a sequence with compaction_style = {wanted}, and the "
            f"config has {style}; name a config whose options say so"
        )
    waits = "waitforcompaction" in step_of(workload).then
    if waits and not can_wait(version, at.engine, at.options):
        return (
            f"{workload.name} waits for compaction, which may never end with universal before "
            f"8.6 (this is {version}); measure overwrite instead, which does not wait"
        )
    return ""


def taken(options: Mapping[str, Flag]) -> str:
    """Return which options are forkwatch's own, in words; empty where none is."""
    ours = sorted(OURS & options.keys())
    if not ours:
        return ""
    return f"the config sets {', '.join(ours)}, which forkwatch sets itself; leave it out"


def can_wait(version: str, engine: str, options: Mapping[str, Flag]) -> bool:
    """Whether `waitforcompaction` is there and ends."""
    if engine != "rocksdb":
        return False
    found = _VERSION.search(version)
    numbers = (int(found.group(1)), int(found.group(2))) if found else (0, 0)
    return not is_universal(options) or numbers >= UNIVERSAL_WAITS


def is_universal(options: Mapping[str, Flag]) -> bool:
    """Whether a config asks for universal compaction."""
    return _whole(options, "compaction_style", 0) == UNIVERSAL


def normalising(version: str, engine: str, options: Mapping[str, Flag]) -> tuple[str, ...]:
    """Return the benchmarks that bring a database to rest."""
    able = can_wait(version, engine, options)
    return tuple(name for name in NORMALISE[engine] if able or name != "waitforcompaction")


def threads_of(step: Step, at: Circumstances) -> int:
    """Return how many threads do what is measured."""
    return _whole({**at.options, **step.flags}, "threads", at.threads)


def fits_cache(at: Circumstances) -> bool:
    """Whether all keys and values fit into the block cache, so that reading once fills it."""
    size = at.dataset.rows * (KEY_BYTES[at.engine] + at.dataset.value_bytes)
    return size <= _whole({**BASE[at.engine], **at.options}, "cache_size", 0)


def slice_words(step: Step, at: Circumstances, *, seconds: int, reads: int = 0) -> list[str]:
    """Return the words of a slice: reading the database into the cache first, statistics last.

    Args:
        step: What is measured.
        at: With what.
        seconds: How long, where the step has no fixed work.
        reads: Reads of each thread instead, for LevelDB, which knows no time.
    """
    timed = step.work is None
    before = ["readtocache"] if timed and at.engine == "rocksdb" and fits_cache(at) else []
    bound: dict[str, Flag] = {}
    if step.work is None:
        bound = {"reads": reads} if at.engine == "leveldb" else {"duration": seconds}
    elif at.engine == "rocksdb":
        # Rounded up: the work is never less than the catalog says.
        bound = {"writes": math.ceil(at.dataset.rows * step.work / threads_of(step, at))}
    return words([*before, step.benchmark, *step.then, "stats"], at, step=step, more=bound)


def words(
    benchmarks: Sequence[str],
    at: Circumstances,
    *,
    step: Step | None = None,
    more: Mapping[str, Flag] | None = None,
) -> list[str]:
    """Return the words that run these benchmarks one after the other, but for the folder.

    A step's own flags win over the config's, the config's over the step's defaults, and these over
    the field's.
    """
    defaults, forced = _flags_of(step, at.engine)
    flags: dict[str, Flag] = {**BASE[at.engine], "threads": at.threads}
    flags |= {**defaults, **at.options, **forced}
    if step is None or not step.writer:
        # It would slow down whatever writes in the foreground.
        flags.pop(RATE, None)
    if at.engine == "rocksdb":
        flags |= {"key_size": KEY_BYTES["rocksdb"], "seed": at.seed}
    flags |= {"num": at.dataset.rows, "value_size": at.dataset.value_bytes, "histogram": True}
    flags |= {"use_existing_db": step is None or not step.fresh, **(more or {})}
    return [f"--benchmarks={','.join(benchmarks)}", *_written(flags)]


def _flags_of(step: Step | None, engine: str) -> tuple[Mapping[str, Flag], Mapping[str, Flag]]:
    """Return a step's flags that a config may change, and those it may not."""
    if step is None:
        return {}, {}
    if engine == "rocksdb":
        return step.defaults, step.flags
    # LevelDB's program does not start with a flag that it does not know.
    return {}, {name: value for name, value in step.flags.items() if name == "threads"}


def _written(flags: Mapping[str, Flag]) -> list[str]:
    return [
        f"--{name}={int(value) if isinstance(value, bool) else value}"
        for name, value in flags.items()
    ]


def _whole(flags: Mapping[str, Flag], name: str, default: int) -> int:
    """Return a flag as a number; what is none, db_bench refuses to start with."""
    text = str(flags.get(name, default))
    return int(text) if _WHOLE.fullmatch(text) else default


def loading_steps(engine: str) -> tuple[Step, ...]:
    """Return what makes a dataset, before it is brought to rest."""
    names = ("fillseq", "overwritesome") if engine == "rocksdb" else ("fillseq",)
    return tuple(STEPS[name] for name in names)


def format_options(engine: str, options: Mapping[str, Flag]) -> dict[str, Flag]:
    """Return the flags that decide what a loaded database looks like.

    A flag that is not known to matter only while the database runs is one of them, so that two
    configs share a dataset only where that is safe. Our own way of loading is one as well.
    """
    flags = {**BASE[engine], **options}
    loading = [
        (step.benchmark, step.work, sorted(step.flags.items())) for step in loading_steps(engine)
    ]
    return {
        "loading": json.dumps([KEY_BYTES[engine], LOAD_SEED, loading]),
        **{name: value for name, value in sorted(flags.items()) if name not in FORMAT_FREE},
    }
