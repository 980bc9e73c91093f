"""A runner's answer without a runner: the subject of a commit says how its measurement goes.

Words in a subject: `speed=0.9` scan is that fast in every job; `luck=0.9` scan looks that fast in
the commit's own job only; `outcome=build-failed` (or unchanged, failed, unstable) ends the job,
with `cause=host` by what the host did.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from results.document import Cause, Outcome
from results.slice import SideName
from tests.fakes.run_documents import a_run

if TYPE_CHECKING:
    from results.document import RunDocument
    from results.job import JobOrder

SCAN_OPS_S, POINT_OPS_S = 2.0, 60_000.0
STARTS, SLICES = 3, 2
#: A pair goes on until it is decided; this many are enough for what is planted here.
PAIR_STARTS = 6
#: Log sds; small beside any planted change.
RUN_SD, START_SD, SLICE_SD = 0.002, 0.003, 0.002

PLAN = """
[fork]
name = "demo"
branch = "main"
engine = "mariadb"

[builds.rel]

[suites.commit]
workloads = ["scan", "point-query"]

[gates]
default = 0.05
"""


def directives(subject: str) -> dict[str, str]:
    """Return the words of a subject that have a value."""
    return dict(re.findall(r"(\w+)=([\w.-]+)", subject))


def measure(order: JobOrder, subjects: dict[str, str], *, host_class: str = "small") -> RunDocument:
    """Return the document of a job, by the subjects of its commits."""
    said = directives(subjects[order.candidate])
    story = a_run().of("demo").called(order.run, job=order.job)
    story = story.on(order.candidate, subject=subjects[order.candidate])
    if order.baseline:
        story = story.against(order.baseline)
    outcome = Outcome(said.get("outcome", "measured"))
    if order.build_only and outcome is Outcome.MEASURED:
        document = replace(story, outcome=Outcome.BUILT).build()
    elif outcome is not Outcome.MEASURED:
        document = story.that(outcome, stage="build", message="it was planned to").build()
        assert document.failure is not None
        cause = Cause(said["cause"]) if "cause" in said else None
        failure = document.failure.model_copy(update={"cause": cause})
        document = document.model_copy(update={"failure": failure})
    else:
        luck = 1.0 if order.baseline else float(said.get("luck", "1"))
        rng = random.Random(order.seed)
        count = PAIR_STARTS if order.baseline else STARTS
        story = story.with_samples("scan", _starts(rng, SCAN_OPS_S * _speed(said) * luck, count))
        if not order.workloads or "point-query" in order.workloads:
            story = story.with_samples("point-query", _starts(rng, POINT_OPS_S, count))
        if order.baseline:
            before = SCAN_OPS_S * _speed(directives(subjects[order.baseline]))
            story = story.with_samples("scan", _starts(rng, before, count), side=SideName.BASELINE)
            points = _starts(rng, POINT_OPS_S, count)
            story = story.with_samples("point-query", points, side=SideName.BASELINE)
        document = story.build()
    host = document.host.model_copy(update={"host_class": host_class})
    return document.model_copy(update={"host": host})


def _speed(said: dict[str, str]) -> float:
    return float(said.get("speed", "1"))


def _starts(rng: random.Random, level: float, count: int) -> list[list[float]]:
    run = level * rng.lognormvariate(0, RUN_SD)
    starts = [run * rng.lognormvariate(0, START_SD) for _ in range(count)]
    return [[start * rng.lognormvariate(0, SLICE_SD) for _ in range(SLICES)] for start in starts]
