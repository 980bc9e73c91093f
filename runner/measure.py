"""Measure: one start, with one server per side, slices alternating between the sides.

A start begins from freshly restored datasets and new server processes. Baseline and candidate are
both up; slices run in balanced order (ABBA, who goes first drawn from the job's seed), so that a
drift of the host cancels inside the pairs. Both sides of a pair of slices get the same seed and
therefore the same keys. Steps of a chain cannot be repeated: each side runs them once in a start.
"""

from __future__ import annotations

import hashlib
import random
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from results.document import Preparation, Start
from results.slice import SideName, SliceState
from runner import clock, paired_slices, start_servers, warmup
from runner.bench import Bench
from runner.errors import ServerError
from runner.servers.settle import settle
from runner.slices import measure_slice, run_client
from runner.start_servers import held_still, naming, restore
from workloads import tpcc
from workloads.workload import DatasetKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from results.server_facts import ServerLife
    from results.slice import Slice
    from runner.progress import Progress
    from runner.servers.engine import RunningServer
    from workloads.catalog import Workload

__all__ = [
    "Bench",
    "held_still",
    "legs",
    "measure_slice",
    "measure_start",
    "restore",
    "slice_order",
]

#: Largest seed that sysbench takes as it is.
_SEED_MAX: Final = 2**31 - 1
#: How often a disturbed slice is measured again in its start: more would let a busy host hold a job
#: for ever, and what is still disturbed then is left out.
REPEATS_MAX: Final = 2


def measure_start(
    bench: Bench, index: int, workloads: Sequence[Workload], progress: Progress
) -> Start:
    """Return one start with all slices of these workloads.

    Raises:
        DatasetError, ServerError, ClientError: The start has no complete numbers.
    """
    started_at, began = clock.now(), time.monotonic()
    record = _Record(bench=bench, index=index, progress=progress)
    for number, leg in enumerate(legs(workloads)):
        with start_servers.servers(bench, start=index, leg=number, lives=record.lives) as servers:
            for workload in leg:
                _measure_workload(record, workload, servers)
            check_data(leg, servers)
    return Start(
        index=index,
        started_at=started_at,
        seconds=round(time.monotonic() - began, 3),
        measured_seconds=round(sum(piece.seconds for piece in record.pieces), 3),
        slices=tuple(record.pieces),
        preparations=tuple(record.preparations),
        servers=tuple(sorted(record.lives, key=lambda life: (life.leg, life.side))),
    )


def check_data(leg: Sequence[Workload], servers: Mapping[SideName, RunningServer]) -> None:
    """Refuse a start whose server lost or doubled writes: such a server may be fast."""
    if not any(workload.dataset is DatasetKind.TPCC for workload in leg):
        return
    for side, server in servers.items():
        faults = tpcc.faults(partial(server.engine.rows, server))
        if faults:
            raise ServerError("measure", f"{side}: inconsistent after TPC-C", "\n".join(faults))


def legs(workloads: Sequence[Workload]) -> list[list[Workload]]:
    """Return what may run on one restored dataset: all that reads, and at most one that writes.

    Reading workloads go first, for they leave the dataset as it was. Every further writing one
    begins from the snapshot again, so that a build which writes faster does not change what the
    next workload finds. A chain has a dataset of its own, and its steps stay in their order.
    """
    alone = [workload for workload in workloads if not workload.chain]
    reading = [workload for workload in alone if not workload.writes]
    writing = [[workload] for workload in alone if workload.writes]
    chains: dict[str, list[Workload]] = {}
    for workload in workloads:
        if workload.chain:
            chains.setdefault(workload.chain, []).append(workload)
    first = [*reading, *(writing[0] if writing else [])]
    return [leg for leg in (first, *writing[1:], *chains.values()) if leg]


def whole_chains(wanted: Sequence[Workload], every: Sequence[Workload]) -> list[Workload]:
    """Return what has to be measured so that the wanted ones can be, in the order of the suite.

    A step of a chain begins from what the ones before have left, so it takes all of its chain.
    """
    names = {workload.name for workload in wanted}
    chains = {workload.chain for workload in wanted if workload.chain}
    return [workload for workload in every if workload.name in names or workload.chain in chains]


@dataclass(frozen=True, kw_only=True)
class _Record:
    """What a start has yielded so far."""

    bench: Bench
    index: int
    progress: Progress
    pieces: list[Slice] = field(default_factory=list)
    preparations: list[Preparation] = field(default_factory=list)
    lives: list[ServerLife] = field(default_factory=list)


def _measure_workload(
    record: _Record, workload: Workload, servers: Mapping[SideName, RunningServer]
) -> None:
    bench, index = record.bench, record.index
    for side in servers:
        record.preparations.append(_prepare(bench, workload, side, servers))
    slices = 1 if workload.chain else bench.suite.slices
    todo = list(slice_order(list(servers), slices, seed=_seed(bench.seed, index, workload.name)))
    measure: Callable[[_Record, Workload, Mapping[SideName, RunningServer], int, SideName], bool]
    measure = _is_disturbed
    if in_turns(bench, workload, servers):
        # Who is first in a pair of slices begins the turns.
        measure, todo = _are_disturbed, todo[:: len(servers)]
    for _ in range(1 if workload.chain else 1 + REPEATS_MAX):
        # What was disturbed is measured again after the others: a burst has passed by then, and
        # no slice uses up the repeats of the rest.
        todo = [turn for turn in todo if measure(record, workload, servers, *turn)]


def in_turns(bench: Bench, workload: Workload, servers: Mapping[SideName, RunningServer]) -> bool:
    """Whether the sides of a pair are measured in turns and not one slice after the other."""
    return len(servers) > 1 and bench.suite.turn_ms > 0 and paired_slices.takes_turns(workload)


def _are_disturbed(
    record: _Record,
    workload: Workload,
    servers: Mapping[SideName, RunningServer],
    pair: int,
    first: SideName,
) -> bool:
    """Measure a slice of each side in turns and record them; return whether that was disturbed."""
    bench, index = record.bench, record.index
    order = sorted(servers, key=lambda side: side is not first)
    pieces = paired_slices.measure_pair(
        bench,
        workload,
        {side: servers[side] for side in order},
        sequence=len(record.pieces),
        seed=_seed(bench.seed, index, workload.name, pair),
    )
    for piece in pieces:
        record.pieces.append(piece)
        record.progress.piece(index, piece)
    return any(piece.state is SliceState.DISTURBED for piece in pieces)


def _is_disturbed(
    record: _Record,
    workload: Workload,
    servers: Mapping[SideName, RunningServer],
    pair: int,
    side: SideName,
) -> bool:
    """Measure a slice and record it; return whether something got in its way."""
    bench, index = record.bench, record.index
    seed = _seed(bench.seed, index, workload.name, pair)
    with naming(side), held_still(_others(servers, side)):
        piece = measure_slice(bench, workload, servers, side, len(record.pieces), seed)
    record.pieces.append(piece)
    record.progress.piece(index, piece)
    return piece.state is SliceState.DISTURBED


def _prepare(
    bench: Bench,
    workload: Workload,
    side: SideName,
    servers: Mapping[SideName, RunningServer],
) -> Preparation:
    """Bring one side to rest and then to its steady speed."""
    with naming(side), held_still(_others(servers, side)):
        settled = settle(servers[side])
        warmed = warmup.NONE
        # A step of a chain would do its work in the warm-up.
        if bench.suite.warmup_seconds and not workload.chain:
            warmed = warmup.warm_up(
                lambda number: run_client(
                    bench,
                    workload,
                    servers[side],
                    seconds=bench.suite.warmup_seconds,
                    seed=_seed(bench.seed, "warm-up", workload.name, number),
                )
            )
    return Preparation(
        workload=workload.name,
        side=side,
        settle_seconds=settled.seconds,
        left=settled.left,
        warm_up_seconds=warmed.seconds,
        steady=warmed.steady,
    )


def _others(servers: Mapping[SideName, RunningServer], side: SideName) -> list[RunningServer]:
    return [server for name, server in servers.items() if name is not side]


def slice_order(
    sides: Sequence[SideName], slices: int, *, seed: int
) -> Sequence[tuple[int, SideName]]:
    """Return (pair, side) for each slice: every side `slices` times, in balanced order.

    Two sides alternate as ABBA ABBA or BAAB BAAB, so that each goes first equally often and a
    linear drift cancels; the seed decides which.
    """
    first = list(sides)
    if random.Random(seed).random() < 0.5:  # noqa: PLR2004  a fair coin
        first.reverse()
    order = []
    for pair in range(slices):
        turn = first if pair % 2 == 0 else first[::-1]
        order += [(pair, side) for side in turn]
    return order


def _seed(*parts: object) -> int:
    """Return a seed above zero (to sysbench, zero means the time of day)."""
    text = "\x1f".join(str(part) for part in parts)
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    return number % _SEED_MAX + 1
