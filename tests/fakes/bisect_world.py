"""A service that has only what bisects, on real DBOS and a real database.

with a_bisect_world(home) as world:
    good, bad = world.branch("Import", "Quiet", "Slower speed=0.9", "After it speed=0.9")
    bisect = world.ended(world.ask(good, bad))

The subject of a commit says how it measures, as for pull requests; `goodfails=commit` in that of
the good end has every pair fail for it, `goodfails=host` for what the host did to its build.
"""

from __future__ import annotations

import hashlib
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from dbos import DBOS, DBOSConfig

from results.document import Cause, Failure, Outcome, RunDocument
from results.sources import told
from service.channels.github.commands import parse_command
from service.channels.github.webhooks import CommentMade
from service.core.bisections import UNDER_WAY, BisectAsk
from service.core.model import GitCommit
from service.core.settings import load_settings
from service.flows.alert_actions import StoredAlertActions
from service.flows.bisect_alerted import AlertedBisects
from service.flows.bisect_asks import BisectAsks
from service.flows.bisect_flow import BisectFlow
from service.flows.bisect_merges import BisectMerges
from service.flows.bisect_steps import BisectSteps
from service.flows.bisect_telling import BisectTelling
from service.flows.comment_steps import CommentSteps
from service.store import bisect_jobs, bisects, commits, forks, migrate
from service.store.database import Database
from tests.fakes.memory_fork import AT, StillClock
from tests.fakes.memory_pulls import MemoryPulls, MemoryTalk, Mood, PatientRunners
from tests.fakes.run_documents import TREE
from tests.fakes.scripted_measurement import directives, measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from bisects.document import BisectDocument
    from results.job import JobOrder
    from service.core.bisections import Bisect, BisectJob
    from service.core.model import Alert, JobStatus
    from service.core.settings import Settings

#: Nothing waits on purpose for so long; this only bounds a hang.
PATIENCE_SECONDS = 120
QUEUE = "measure-small"
BOT = "forkwatch[bot]"


class LongFork(MemoryPulls):
    """A branch whose hashes differ from their first digit on, so that artifacts do, too."""

    def push(self, subject: str) -> str:
        """Add a commit to the branch and return its hash."""
        text = f"{len(self.commits)} {subject}"
        commit = GitCommit(
            sha=hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(),
            tree=TREE,
            parent=self.commits[-1].sha if self.commits else None,
            author="Ada",
            subject=subject,
            committed_at=AT,
        )
        self.commits.append(commit)
        return commit.sha


class PairRunners(PatientRunners):
    """Runners of pairs, whose good end may not build, and which tell sources where asked.

    A job that only builds a commit with `slowbuild=yes` in its subject comes to no end.
    """

    #: What neither server is made of.
    outside: tuple[str, ...] = ()
    #: Host classes whose jobs other machines do.
    elsewhere: frozenset[str] = frozenset()

    def is_elsewhere(self, host_class: str) -> bool:
        return host_class in self.elsewhere

    def begun(self, prefix: str) -> dict[str, JobStatus]:
        jobs = {order.job for order in self.orders if order.job.startswith(prefix)}
        return {job: self.status(job) for job in sorted(jobs)}

    def _tell_sources(self, order: JobOrder) -> None:
        brought = self._documents.get(order.job)
        if order.tell_sources and brought is not None:
            document = RunDocument.model_validate_json(brought)
            telling = document.model_copy(update={"outside": told(self.outside)})
            self._documents[order.job] = telling.model_dump_json().encode()

    def start(self, order: JobOrder) -> None:
        subjects = self._fork.subjects
        if order.build_only and "slowbuild" in directives(subjects[order.candidate]):
            self.orders.append(order)
            self.at_work.add(order.job)
            return
        said = directives(subjects[order.baseline]) if order.baseline else {}
        if "goodfails" not in said:
            super().start(order)
            self._tell_sources(order)
            return
        self.orders.append(order)
        document = measure(order, subjects)
        assert document.baseline is not None
        failed = document.model_copy(
            update={
                "outcome": Outcome.FAILED,
                "failure": Failure(
                    stage="build",
                    message="baseline: no rule to make target",
                    cause=Cause.HOST if said["goodfails"] == "host" else None,
                ),
                "baseline": document.baseline.model_copy(update={"artifact": None}),
                "starts": (),
            }
        )
        self._documents[order.job] = failed.model_dump_json().encode()


class MemoryNews:
    """What was said about alerts, once for each key."""

    def __init__(self) -> None:
        self.said: dict[str, tuple[str, str, str]] = {}

    def tell_news(self, alert: Alert, sentence: str, text: str, *, key: str) -> str | None:
        self.said.setdefault(key, (alert.id, sentence, text))
        return f"memory:{alert.id}"


@dataclass(kw_only=True)
class BisectWorld:
    """Everything around bisects."""

    settings: Settings
    database: Database
    fork: LongFork
    runners: PairRunners
    clock: StillClock
    talk: MemoryTalk
    news: MemoryNews
    actions: StoredAlertActions
    asks: BisectAsks
    alerted: AlertedBisects
    flow: BisectFlow
    comments: CommentSteps
    numbers: Iterator[int] = field(default_factory=lambda: count(7))

    def branch(self, *subjects: str, seen: bool = False) -> tuple[str, str]:
        """Push commits; return the first and the last of them.

        Args:
            subjects: How they measure.
            seen: Whether the service has them written down as those of the watched branch.
        """
        pushed = [self.fork.push(subject) for subject in subjects]
        if seen:
            with self.database.writing() as session:
                forks.ensure(session, "demo", branch="main", at=AT)
                new = [commit for commit in self.fork.commits if commit.sha in pushed]
                commits.register(session, "demo", new, at=AT)
        return pushed[0], pushed[-1]

    def ask(self, good: str, bad: str, **named: Any) -> str:
        """Ask for a bisect; return its id."""
        usual = {"workload": "scan", "actor": "token:ada", "via": "api"}
        return self.asks.ask(BisectAsk(good=good, bad=bad, **(usual | named)))[0].id

    def say(self, text: str, *, number: int | None = None, **named: Any) -> str:
        """Have an order in a comment carried out; return the answer."""
        usual = {"issue_login": "bob", "alert": None, "on_pull_request": False, "login": "ada"}
        comment = CommentMade(
            number=number or next(self.numbers), comment=4711, text=text, at=AT, **(usual | named)
        )
        command = parse_command(text.removeprefix("/forkwatch "))
        return self.comments.carry_out(comment, command, key="comment:4711:0").answer

    def bisect(self, bisect_id: str) -> Bisect:
        with self.database.reading() as session:
            found = bisects.find(session, bisect_id)
        assert found is not None
        return found

    def document(self, bisect_id: str) -> BisectDocument:
        with self.database.reading() as session:
            found = bisects.document(session, bisect_id)
        assert found is not None
        return found

    def jobs(self, bisect_id: str) -> list[BisectJob]:
        with self.database.reading() as session:
            return bisect_jobs.of_bisect(session, bisect_id)

    def orders(self, bisect_id: str) -> list[JobOrder]:
        """Return what runners were asked for a bisect."""
        return [order for order in self.runners.orders if order.job.startswith(bisect_id)]

    def until(self, condition: Callable[[], Any]) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, "it never came to be"
            time.sleep(0.02)

    def ended(self, bisect_id: str) -> Bisect:
        """Wait until a bisect is over and everybody was told; return it."""
        self.until(lambda: self.bisect(bisect_id).state not in UNDER_WAY)
        self.until_quiet()
        return self.bisect(bisect_id)

    def until_quiet(self) -> None:
        """Wait until no flow is left."""

        def quiet() -> bool:
            return not DBOS.list_workflows(status=["PENDING", "ENQUEUED"], load_input=False)

        self.until(quiet)


@contextmanager
def a_bisect_world(home: Path, url: str | None = None, **chosen: object) -> Iterator[BisectWorld]:
    """Open a world; no runner may be left in it."""
    home.mkdir(exist_ok=True)
    settings = load_settings(
        home=home, host_class="small", poll_seconds=0.05, database_url=url, **chosen
    )
    migrate.upgrade(settings.data_url)
    database, fork, clock = Database(settings.data_url), LongFork(), StillClock()
    runners, talk, news = PairRunners(fork), MemoryTalk(Mood()), MemoryNews()
    actions = StoredAlertActions(database, clock)
    DBOS(
        config=DBOSConfig(
            name="forkwatch",
            system_database_url=settings.flows_url,
            executor_id="test",
            application_version="1",
            console_log_level="WARNING",
        )
    )
    steps = BisectSteps(
        database=database, clock=clock, code_host=fork, dispatcher=runners, settings=settings
    )
    telling = BisectTelling(
        database=database, settings=settings, steps=actions, news=news, comments=talk
    )
    merges = BisectMerges(database=database, clock=clock, code_host=fork)
    flow = BisectFlow(
        steps, telling, queue=QUEUE, step_pause_seconds=0.01, poll_seconds=0.02, merges=merges
    )
    asks = BisectAsks(database=database, clock=clock, code_host=fork, settings=settings, flow=flow)
    alerted = AlertedBisects(asks, step_pause_seconds=0.01)
    comments = CommentSteps(
        database=database,
        clock=clock,
        code_host=fork,
        actions=actions,
        settings=settings,
        own_login=lambda: BOT,
        bisects=asks,
    )
    try:
        DBOS.launch()
        DBOS.register_queue(QUEUE, global_concurrency=1, polling_interval_sec=0.02)
        flow.open_queue()
        yield BisectWorld(
            settings=settings,
            database=database,
            fork=fork,
            runners=runners,
            clock=clock,
            talk=talk,
            news=news,
            actions=actions,
            asks=asks,
            alerted=alerted,
            flow=flow,
            comments=comments,
        )
    finally:
        DBOS.destroy(destroy_registry=True)
        database.close()
