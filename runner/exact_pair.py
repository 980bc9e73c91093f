"""Exact counters of a pair: each side is asked the same queries, on a copy that is thrown away.

A bench and names of cases come in; what both sides counted and how it differs goes out, in the run
document's bounds. It fails no job: a pair that was measured well does not lose its numbers because
a server would not answer.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from results.exact import COUNTERS_MAX, DIFFERENCES_MAX, CaseDifference, ComparedCase, ExactCounters
from results.slice import SideName
from results.values import NAME_LENGTH_MAX, TEXT_LENGTH_MAX
from runner import exact, leavings, shell
from runner.errors import StageError
from runner.lone_server import lone_server

if TYPE_CHECKING:
    from collections.abc import Collection

    from runner.bench import Bench
    from workloads.exact import ExactCase

#: For each side, its start included. Making the tables and asking all nine cases took 2.7 s on a
#: busy machine (docs/exact-counters.md), so it ends only what has gone wrong.
SECONDS_MAX: Final = 60.0


def compare(
    bench: Bench, names: Collection[str], *, seconds_max: float = SECONDS_MAX
) -> ExactCounters:
    """Return how the work of these cases differs between the two sides of a bench."""
    began = time.monotonic()
    asked: dict[SideName, dict[str, ExactCase]] = {}
    gaps: list[str] = []
    for side in bench.servers:
        try:
            asked[side] = _asked(bench, side, names, seconds_max)
        except StageError as error:
            asked[side] = {}
            said = shell.readable(f"{error} {error.log_tail}".strip())
            gaps.append(f"{side}: {said}"[:TEXT_LENGTH_MAX])
    baseline, candidate = asked[SideName.BASELINE], asked[SideName.CANDIDATE]
    wanted = list(dict.fromkeys(names))
    both = [name for name in wanted if name in baseline and name in candidate]
    if not gaps:
        gaps += [f"{name}: not answered in time" for name in wanted if name not in both]
    return ExactCounters(
        cases=tuple(_compared(baseline[name], candidate[name]) for name in both),
        gaps=tuple(gaps),
        seconds=round(time.monotonic() - began, 3),
    )


def _asked(
    bench: Bench, side: SideName, names: Collection[str], seconds_max: float
) -> dict[str, ExactCase]:
    """Ask one side; the other is not up.

    Raises:
        DatasetError, ServerError: Its server did not start, stop or answer.
    """
    until = time.monotonic() + seconds_max
    try:
        with lone_server(
            bench.servers[side],
            bench.snapshots[side],
            bench.scratch / side,
            cpus=bench.placement.server_cpus,
        ) as server:
            found = exact.measure(server, bench.dataset, names=names, until=until)
    finally:
        leavings.remove(bench.scratch)
    return {case.name: case for case in found}


def _compared(baseline: ExactCase, candidate: ExactCase) -> ComparedCase:
    """Return one case as the run document has it: what a server says may be of any length."""
    shared = {
        name: count
        for name, count in baseline.counters.items()
        # What counts down is no counter.
        if name in candidate.counters and count >= 0 and 0 < len(name) <= NAME_LENGTH_MAX
    }
    differences = exact.differences([baseline], [candidate])
    return ComparedCase(
        name=baseline.name,
        statement=baseline.statement,
        counters=dict(list(shared.items())[:COUNTERS_MAX]),
        differences=tuple(
            CaseDifference(
                what=one.what[:NAME_LENGTH_MAX],
                baseline=_text(one.baseline),
                candidate=_text(one.candidate),
            )
            for one in [one for one in differences if one.what][:DIFFERENCES_MAX]
        ),
    )


def _text(said: str) -> str:
    return shell.readable(said)[:TEXT_LENGTH_MAX]
