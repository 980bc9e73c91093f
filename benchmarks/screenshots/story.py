"""A week of a fork told for pictures: its commits, its people, and runners that measure as told.

A step comes in for each commit, run documents go out as a runner would bring them. Numbers scatter
as those of a quiet host do, from the order's own seed, so that the pictures are the same each time.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from results.document import Outcome
from results.slice import Latency, SideName
from service.core.model import GitCommit
from tests.fakes.memory_fork import MemoryFork, MemoryRunners, sha_of
from tests.fakes.run_documents import TREE, a_run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from results.document import RunDocument
    from results.job import JobOrder
    from results.slice import Slice
    from service.core.clock import Clock
    from tests.fakes.run_documents import RunStory

#: Operations per second of the first commit.
LEVELS: Final = {
    "scan": 41.2,
    "point-query": 7_840.0,
    "random-points(1000)": 512.0,
    "range-notcovered-si": 1_930.0,
    "update-index": 2_310.0,
    "insert": 3_050.0,
}
SINGLE_STARTS: Final = 3
PAIR_STARTS: Final = 6
SLICES: Final = 2
SECONDS: Final = 10
#: Log sds of a run, a start, a slice and a second: what docs/statistics.md found on a quiet host.
RUN_SD, START_SD, SLICE_SD, SECOND_SD = 0.003, 0.004, 0.002, 0.02
JOB_TIME: Final = timedelta(minutes=34)
PLAN: Final = f"""
[fork]
name = "demo"
branch = "main"
engine = "mariadb"

[builds.rel]

[suites.commit]
workloads = {list(LEVELS)}

[gates]
default = 0.05
"""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A commit and how it measures."""

    subject: str
    author: str = "Ada Lovelace"
    #: Factors on throughput by workload, from this commit on.
    speeds: Mapping[str, float] = field(default_factory=dict)
    #: The same in the commit's own run alone: what only looked so.
    luck: Mapping[str, float] = field(default_factory=dict)
    outcome: Outcome = Outcome.MEASURED


STEPS: Final = (
    Step(subject="Import 10.11.19"),
    Step(subject="Raise the default of innodb_log_file_size"),
    Step(subject="Document the backup locks", outcome=Outcome.UNCHANGED),
    Step(subject="Tidy the parser's error messages", author="Grace Hopper"),
    Step(subject="Keep the table cache in one place"),
    Step(subject="Count purge lag in a status variable", luck={"insert": 0.9}),
    Step(subject="Refactor the handler interface", author="Grace Hopper"),
    Step(subject="Prefetch records on arm64", outcome=Outcome.BUILD_FAILED),
    Step(subject="Fix the build on arm64"),
    Step(
        subject="Read rows of a range in batches",
        author="Grace Hopper",
        speeds={"range-notcovered-si": 1.085},
    ),
    Step(subject="Say which index a hint names"),
    Step(subject="Split the lock wait queue by table"),
    Step(
        subject="Check the record format in row_search_mvcc",
        author="Barbara Liskov",
        speeds={"scan": 0.909},
    ),
    Step(subject="Test the record format"),
    Step(subject="Raise the limit of open tables"),
    Step(subject="Log slow purges", author="Barbara Liskov"),
    Step(
        subject="Take the change buffer out of updates",
        author="Grace Hopper",
        speeds={"update-index": 0.93},
    ),
    Step(subject="Rename a mutex"),
    Step(subject="Print the server's page size at its start"),
    Step(subject="Warm the adaptive hash index", luck={"random-points(1000)": 0.915}),
)


class StoryFork(MemoryFork):
    """A branch whose commits have authors and times."""

    def __init__(self) -> None:
        super().__init__(plan=PLAN)
        self.steps: dict[str, Step] = {}

    def take(self, step: Step, *, at: datetime) -> str:
        """Add a commit to the branch; return its hash."""
        number = len(self.commits) + 1
        commit = GitCommit(
            sha=_sha(number),
            tree=TREE,
            parent=self.commits[-1].sha if self.commits else None,
            author=step.author,
            subject=step.subject,
            committed_at=at,
        )
        self.commits.append(commit)
        self.steps[commit.sha] = step
        return commit.sha

    def resolve(self, revision: str) -> GitCommit | None:
        """Return the commit of a whole hash, None where there is none."""
        return next((commit for commit in self.commits if commit.sha == revision), None)

    def speed(self, sha: str, workload: str) -> float:
        """Return how fast a commit is, of the first one's speed."""
        speed = 1.0
        for commit in self.commits:
            speed *= self.steps[commit.sha].speeds.get(workload, 1.0)
            if commit.sha == sha:
                break
        return speed


class StoryRunners(MemoryRunners):
    """Runners that bring at once what the story says of a commit."""

    def __init__(self, fork: StoryFork, clock: Clock) -> None:
        super().__init__(fork)
        self._story, self._clock = fork, clock

    def start(self, order: JobOrder) -> None:
        """Measure, and keep the document until it is collected."""
        self.orders.append(order)
        document = _measured(order, self._story, at=self._clock.now())
        self._documents[order.job] = document.model_dump_json().encode()


def _sha(number: int) -> str:
    """Return the hash of a commit: it looks like one, and is the same each time."""
    return f"{random.Random(number).getrandbits(128):032x}{sha_of(number)[-8:]}"


def _measured(order: JobOrder, fork: StoryFork, *, at: datetime) -> RunDocument:
    step = fork.steps[order.candidate]
    story = a_run().of("demo").called(order.run, job=order.job)
    story = replace(story.on(order.candidate, subject=step.subject), author=step.author)
    if order.baseline:
        story = story.against(order.baseline)
    rng = random.Random(order.seed)
    if step.outcome is Outcome.MEASURED:
        story = _with_samples(story, order, fork, rng)
    elif step.outcome is Outcome.BUILD_FAILED:
        story = story.that(
            step.outcome,
            stage="build",
            message="ninja: build stopped: subcommand failed.",
            log="[211/854] Building CXX object sql/CMakeFiles/sql.dir/handler.cc.o\n"
            "sql/handler.cc:411:3: error: 'prefetch' was not declared in this scope\n"
            "  411 |   prefetch(rec);",
        )
    else:
        story = replace(story, outcome=step.outcome)
    document = story.build()
    host = document.host.model_copy(update={"host_class": order.host_class})
    detailed = [
        start.model_copy(update={"slices": tuple(_detailed(one, rng) for one in start.slices)})
        for start in document.starts
    ]
    return document.model_copy(
        update={
            "host": host,
            "starts": tuple(detailed),
            "created_at": at - JOB_TIME,
            "finished_at": at,
        }
    )


def _with_samples(
    story: RunStory, order: JobOrder, fork: StoryFork, rng: random.Random
) -> RunStory:
    step = fork.steps[order.candidate]
    for workload in order.workloads or LEVELS:
        luck = 1.0 if order.baseline else step.luck.get(workload, 1.0)
        level = LEVELS[workload]
        now = level * fork.speed(order.candidate, workload) * luck
        count = PAIR_STARTS if order.baseline else SINGLE_STARTS
        story = story.with_samples(workload, _starts(rng, now, count))
        if order.baseline:
            before = level * fork.speed(order.baseline, workload)
            starts = _starts(rng, before, count)
            story = story.with_samples(workload, starts, side=SideName.BASELINE)
    return story


def _starts(rng: random.Random, level: float, count: int) -> list[list[float]]:
    run = level * rng.lognormvariate(0, RUN_SD)
    starts = [run * rng.lognormvariate(0, START_SD) for _ in range(count)]
    return [[start * rng.lognormvariate(0, SLICE_SD) for _ in range(SLICES)] for start in starts]


def _detailed(piece: Slice, rng: random.Random) -> Slice:
    """Return a slice with its seconds, its latency and what the engine counted."""
    rate = piece.throughput_ops_s
    seconds = [rate * rng.lognormvariate(0, SECOND_SD) for _ in range(SECONDS)]
    # One client: what an operation takes is one over the rate.
    typical = 1_000 / rate
    latency = Latency(
        average=typical,
        minimum=0.7 * typical,
        maximum=9 * typical,
        p50=0.97 * typical,
        p95=1.3 * typical,
        p99=2.1 * typical,
    )
    update: dict[str, Any] = {"per_second_ops_s": tuple(seconds), "latency_ms": latency}
    if piece.counters is not None:
        counters = piece.counters
        # What is slower reads more: that is what a reader of the counters should find.
        reads = LEVELS[piece.workload] / rate * 1_000
        engine = {
            "Handler_read_rnd_next": reads * piece.operations,
            "Innodb_rows_read": 1_000.0 * piece.operations,
        }
        update["counters"] = counters.model_copy(
            update={
                "server_cpu_us": 900_000 * typical / 1_000 * piece.operations,
                "engine": engine,
                "device_write_kib": 0.25 * piece.operations,
            }
        )
    return piece.model_copy(update=update)
