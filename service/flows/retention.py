"""Retention as a durable flow: which runs are old, which are in use, and what of the others goes.

A schedule asks every night, and every start of the service for what was missed. Each step takes a
few runs and ends, so that nobody waits for it. What an open alert or a present baseline rests on
stays whole, however old it is.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from dbos import DBOS

from results.metric import THROUGHPUT
from service.core.alert_actions import OPEN_STATES
from service.flows.alert_actions import losses_of
from service.flows.baseline import level_at
from service.flows.durable import run_step
from service.store import alerts, commits, forks, retention, runs, series, verdicts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from dbos import WorkflowHandle
    from sqlalchemy.orm import Session

    from service.core.clock import Clock
    from service.core.model import Alert, Fork
    from service.store.database import Database

_log = logging.getLogger("forkwatch.retention")

#: While most people sleep, and beside no digest.
SCHEDULE: Final = "30 3 * * *"
SCHEDULE_NAME: Final = "nightly-retention"
#: Runs of one step: some seconds of work.
BATCH_RUNS: Final = 100
#: Parts besides the kinds of documents.
BISECTS: Final = "bisects"
SAMPLES: Final = "samples"
#: Documents have to be unpacked to be looked into, so a night looks only at those that grew old
#: lately. What was older is looked at when the service starts, or by `forkwatch db prune`.
NIGHT_LOOKS_BACK: Final = timedelta(days=30)


@dataclass(frozen=True, kw_only=True)
class Pruned:
    """What went, or would go."""

    #: Documents that lose their seconds, and the bytes that they take less.
    documents: int = 0
    document_bytes: int = 0
    #: Runs that keep one sample for each start, and the rows that go.
    runs: int = 0
    rows: int = 0
    #: Measurements of bisects that lose their documents, and the bytes of these.
    bisect_documents: int = 0
    bisect_bytes: int = 0

    def __add__(self, other: Pruned) -> Pruned:
        """Return both together."""
        return Pruned(
            documents=self.documents + other.documents,
            document_bytes=self.document_bytes + other.document_bytes,
            runs=self.runs + other.runs,
            rows=self.rows + other.rows,
            bisect_documents=self.bisect_documents + other.bisect_documents,
            bisect_bytes=self.bisect_bytes + other.bisect_bytes,
        )


@dataclass(frozen=True, kw_only=True)
class RetentionSteps:
    """The steps, with everything they touch; doing one again changes nothing."""

    database: Database
    clock: Clock
    #: Days that seconds and samples are kept; 0 for ever.
    keep_seconds_days: int
    keep_samples_days: int

    def everything(self, *, dry: bool = False) -> Pruned:
        """Prune all that is old, or only say what would go."""
        total = Pruned()
        for part in self.parts():
            after: str | None = ""
            while after is not None:
                pruned, after = self.prune(part, after, dry=dry)
                total += pruned
        return total

    def parts(self) -> list[str]:
        """Return what there is to prune: kinds of documents, and samples."""
        documents = list(retention.DOCUMENTS) if self.keep_seconds_days else []
        return [*documents, *([BISECTS, SAMPLES] if self.keep_samples_days else [])]

    def prune(
        self, part: str, after: str, *, lately: bool = False, dry: bool = False
    ) -> tuple[Pruned, str | None]:
        """Prune some runs of a part; return what went, and where to go on, None at the end.

        Args:
            part: One of `parts`.
            after: Where to go on; the empty text begins.
            lately: Look only at what has grown old lately.
            dry: Change nothing.
        """
        if part == BISECTS:
            return self._drop_bisect_documents(after, dry=dry)
        if part == SAMPLES:
            return self._prune_samples(after, dry=dry)
        return self._prune_seconds(part, after, lately=lately, dry=dry)

    def _prune_seconds(
        self, kind: str, after: str, *, lately: bool, dry: bool
    ) -> tuple[Pruned, str | None]:
        before = self.clock.now() - timedelta(days=self.keep_seconds_days)
        since = before - NIGHT_LOOKS_BACK if lately else None
        with self.database.reading() as session:
            found = retention.old_documents(
                session, kind, before=before, since=since, after=after, limit=BATCH_RUNS
            )
        total = Pruned()
        for row_id in found:
            total += self._lose_seconds(kind, row_id, dry=dry)
        return total, _next(found)

    def _lose_seconds(self, kind: str, row_id: str, *, dry: bool) -> Pruned:
        with self.database.reading() as session:
            packed = retention.packed_document(session, kind, row_id)
        # Unpacked and packed again before the writing begins: others write meanwhile.
        smaller = retention.without_seconds(packed) if packed else None
        if packed is None or smaller is None:
            return Pruned()
        if not dry:
            with self.database.writing() as session:
                retention.replace_document(session, kind, row_id, smaller)
        return Pruned(documents=1, document_bytes=len(packed) - len(smaller))

    def _prune_samples(self, after: str, *, dry: bool) -> tuple[Pruned, str | None]:
        before = self.clock.now() - timedelta(days=self.keep_samples_days)
        with self.database.reading() as session:
            found = retention.old_documents(
                session, "runs", before=before, after=after, limit=BATCH_RUNS
            )
            rows = retention.rows_to_go(session, found)
            # Asked for each batch anew: an alert may have been opened again a moment ago.
            used = runs_in_use(session) if rows else set()
        rows = {run: count for run, count in rows.items() if run not in used}
        if not dry:
            for run in rows:
                with self.database.writing() as session:
                    retention.thin_samples(session, run)
        return Pruned(runs=len(rows), rows=sum(rows.values())), _next(found)

    def _drop_bisect_documents(self, after: str, *, dry: bool) -> tuple[Pruned, str | None]:
        """Let old measurements of bisects keep their observations alone.

        An observation has one number for each start, which is what old samples come to as well.
        """
        before = self.clock.now() - timedelta(days=self.keep_samples_days)
        with self.database.reading() as session:
            found = retention.bisect_documents_to_go(
                session, before=before, after=after, limit=BATCH_RUNS
            )
        if found and not dry:
            with self.database.writing() as session:
                retention.drop_bisect_documents(session, found)
        pruned = Pruned(bisect_documents=len(found), bisect_bytes=sum(found.values()))
        return pruned, _next(list(found))


class RetentionFlow:
    """The flow, registered with DBOS; make one before DBOS is launched."""

    def __init__(self, steps: RetentionSteps, *, step_pause_seconds: float = 1.0) -> None:
        self._steps = steps
        self._pause = step_pause_seconds
        self._prune = self._registered()

    def open_schedule(self) -> None:
        """Declare the nightly schedule, and begin with what was missed; DBOS has to be launched."""
        DBOS.apply_schedules(
            [
                {
                    "schedule_name": SCHEDULE_NAME,
                    "workflow_fn": self._prune,
                    "schedule": SCHEDULE,
                    "context": {"lately": True},
                }
            ]
        )
        if self._steps.parts():
            self.catch_up()

    def catch_up(self) -> WorkflowHandle[None]:
        """Begin to prune all that is old; return a handle of the flow."""
        return DBOS.start_workflow(self._prune, self._steps.clock.now(), {"lately": False})

    def _registered(self) -> Callable[[datetime, Any], None]:
        @DBOS.workflow(name="prune_store")
        def prune_store(scheduled_at: datetime, context: Any) -> None:
            del scheduled_at
            lately = bool(context and context.get("lately"))
            for part in self._step("parts", self._steps.parts):
                after: str | None = ""
                while after is not None:
                    after = self._step("prune", self._prune_some, part, after, lately)

        return prune_store

    def _prune_some(self, part: str, after: str, lately: bool) -> str | None:  # noqa: FBT001  a step's arguments have places, not names
        pruned, go_on = self._steps.prune(part, after, lately=lately)
        if pruned != Pruned():
            _log.info(
                "%s: %d documents lost their seconds (%d bytes), %d runs have %d samples less, "
                "%d measurements of bisects have no document any more (%d bytes)",
                part,
                pruned.documents,
                pruned.document_bytes,
                pruned.runs,
                pruned.rows,
                pruned.bisect_documents,
                pruned.bisect_bytes,
            )
        return go_on

    def _step(self, name: str, step: Callable[..., Any], *arguments: Any) -> Any:
        return run_step(step, *arguments, pause_seconds=self._pause, name=f"retention_{name}")


def runs_in_use(session: Session) -> set[str]:
    """Return runs whose every sample is needed: by baselines, open alerts and unfinished commits.

    Supporting series and the other metrics of these runs stay whole with them.
    """
    used: set[str] = set()
    for fork in forks.everything(session):
        used.update(_baselines(session, fork))
        for commit in commits.unfinished(session, fork.name):
            used.update(run.id for run in runs.of_commit(session, fork.name, commit.sha))
        for alert in alerts.in_states(session, fork.name, OPEN_STATES):
            used.update(_evidence(session, alert))
    return used


def _baselines(session: Session, fork: Fork) -> Iterator[str]:
    """Give what the next commit of a branch would be compared with, in every series."""
    newest = commits.newest(session, fork.name, limit=1)
    for key in series.of_fork(session, fork.name, metric=THROUGHPUT.name):
        for commit in newest:
            yield from (one.run for one in level_at(session, key, commit.sha))


def _evidence(session: Session, alert: Alert) -> Iterator[str]:
    """Give what an alert rests on, and what will show that its loss is gone."""
    for commit in alerts.commits_of(session, alert.id):
        for run in runs.of_commit(session, alert.fork, commit.sha):
            yield run.id
            for verdict in verdicts.of_run(session, run.id):
                yield from (name for name, _ in verdict.baseline_inputs)
    yield alert.run
    for loss in losses_of(session, alert):
        yield from (one.run for one in level_at(session, loss.series, alert.baseline_sha))


def _next(found: list[str]) -> str | None:
    return found[-1] if len(found) == BATCH_RUNS else None
