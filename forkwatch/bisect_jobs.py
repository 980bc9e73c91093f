"""The jobs of a bisect on this machine: each measures a commit beside the good end.

A question and a place in its range come in, orders and what came of them go out. A job is named by
what its measurement depends on, so that asking again, or about an overlapping range, takes what is
there. Which commit is measured next is not decided here.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import shutil
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from bisects.errors import BisectError
from bisects.observing import (
    given_up,
    good_end_fails,
    host_fails,
    is_hosts_fault,
    observation_of,
    reason,
)
from forkwatch.comparing import do
from forkwatch.errors import DoorError
from reports.numbers import short
from results.document import Artifact, Outcome, RunDocument
from results.job import DOCUMENT_FILE, JobOrder
from runner import server_sources
from runner.artifacts import MANIFEST
from runner.build import artifact_id, find_toolchain
from workloads.plan import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path
    from typing import TypeAlias

    from bisects.document import Observation
    from bisects.search import NextOrder
    from forkwatch.bisect_question import Asked
    from runner.progress import Progress
    from runner.settings import Home, RunnerSettings

    Measure: TypeAlias = Callable[[JobOrder], RunDocument]

_log = logging.getLogger("forkwatch.bisect")

#: A job that failed, or whose host was unstable, is tried so often before it counts.
TRIES: Final = 3
_AGAIN: Final = {Outcome.FAILED, Outcome.UNSTABLE}
_SEEDS: Final = 2**31


class UnstableHostError(DoorError):
    """The host could not be trusted, however often it was tried."""


def order_of(asked: Asked, commit: int, *, number: int) -> JobOrder:
    """Return the job that measures a commit of the range beside the good end.

    Its name is made of what the measurement depends on. The range, the stop and the budget are no
    part of that: another bisect that wants the same pair finds it measured.

    Args:
        asked: The question.
        commit: Place of the commit.
        number: Tells jobs of one commit apart.
    """
    question, plan = asked.question, asked.plan
    suite = plan.suite(question.suite)
    sha = asked.range.commits[commit].sha
    hosts = {name: host for name, host in plan.hosts.items() if name == question.host_class}
    parts = (
        *(digest(part) for part in (plan.fork, suite, plan.gates, *hosts.values())),
        digest(plan.build(question.variant)),
        digest(plan.config(question.config)),
        digest(plan.datasets[suite.dataset]),
        *(question.suite, question.variant, question.config, question.host_class),
        *(question.good, sha, question.workload, asked.starts_each, question.seed, number),
        str(asked.repository),
    )
    hashed = hashlib.sha256(repr(parts).encode())
    name = f"bisect-{hashed.hexdigest()[:24]}"
    return JobOrder(
        job=name,
        run=name,
        repository=asked.repository,
        plan=asked.plan_text,
        branch=plan.fork.branch,
        suite=question.suite,
        host_class=question.host_class,
        workloads=(question.workload,),
        starts=asked.starts_each,
        # Jobs of one commit have other slice orders and other keys, as other starts have.
        seed=int.from_bytes(hashed.digest()[:8]) % _SEEDS,
        candidate=sha,
        baseline=question.good,
    )


def measure_here(home: Home, settings: RunnerSettings, progress: Progress) -> Measure:
    """Return what does a job on this machine, or gives the document of one that is done."""

    def measure(order: JobOrder) -> RunDocument:
        _forget_failure(home.folder("jobs", order.job))
        document, _ = do(order, home=home, settings=settings, progress=progress)
        return document

    return measure


def observe(asked: Asked, order: NextOrder, *, number: int, measure: Measure) -> Observation:
    """Do a job, several times if it fails, and return what it says of its commit.

    Raises:
        DoorError: The good end does not build.
        UnstableHostError: The host cannot be trusted.
    """
    job = order_of(asked, order.commit, number=number)
    seconds, why, by_host = 0.0, "", 0
    for number_of_try in range(1, TRIES + 1):
        document = measure(job)
        seconds += _wall_seconds(document)
        try:
            return observation_of(
                document, commit=order.commit, workload=asked.question.workload, seconds=seconds
            )
        except BisectError as error:
            why = str(error)
        by_host += is_hosts_fault(document)
        _refuse_good_end(asked, document)
        if document.outcome not in _AGAIN:
            break
        left = "tried again" if number_of_try < TRIES else "given up"
        _log.warning("%s brought nothing (%s); %s", short(order.sha), why, left)
    if document.outcome is Outcome.UNSTABLE or good_end_fails(document):
        unstable = document.outcome is Outcome.UNSTABLE
        raise UnstableHostError(
            f"the host {'was unstable' if unstable else 'ended the build of the good end'} in "
            f"{TRIES} tries at {short(order.sha)} ({why}); `forkwatch doctor` says what disturbs "
            "it, and the same command goes on"
        )
    return given_up(
        commit=order.commit,
        job=job.job,
        why=why,
        seconds=seconds,
        build_seconds=min(seconds, document.stage_seconds.get("build", 0.0)),
        # A server that failed once in between may be the commit's fault.
        tries=by_host if by_host == TRIES else 0,
    )


def refuse_failing_host(before: Sequence[Observation], one: Observation) -> None:
    """Refuse to go on where the host set two commits aside, one right after the other.

    Raises:
        UnstableHostError: It did.
    """
    if host_fails(before, one):
        raise UnstableHostError(
            f"the host ended the builds of two commits in a row, {TRIES} times each "
            f"({one.failure}); no commit is to blame for that. Mend it, and the same command goes "
            "on"
        )


def kept(asked: Asked, home: Home) -> list[Observation]:
    """Return what jobs of earlier bisects say of commits of this range, the oldest first.

    Jobs without an answer are left out; they are tried again when their turn comes.
    """
    found = []
    for commit in range(1, len(asked.range.commits)):
        for number in itertools.count():
            job = order_of(asked, commit, number=number).job
            document = _read(home.root / "jobs" / job / DOCUMENT_FILE)
            if document is None or document.outcome in _AGAIN:
                break
            seconds = _wall_seconds(document)
            try:
                said = observation_of(
                    document, commit=commit, workload=asked.question.workload, seconds=seconds
                )
            except BisectError:
                break
            found.append((document.finished_at, said))
    return [said for _, said in sorted(found, key=lambda one: one[0])]


def artifacts_of(asked: Asked, home: Home) -> dict[str, Artifact]:
    """Return the artifacts that are there of commits of the range, by hash.

    Raises:
        HostError: There is no compiler.
    """
    found = {}
    for commit, folder in zip(asked.range.commits, _folders(asked, home), strict=True):
        manifest = folder / MANIFEST
        try:
            found[commit.sha] = Artifact.model_validate_json(manifest.read_bytes())
        except (OSError, ValidationError):
            # Not built yet, or spoilt, so that it will be built again.
            continue
    return found


def outside_of(asked: Asked, home: Home) -> frozenset[str]:
    """Return the source files that neither end's server is made of; none until both are built.

    Raises:
        HostError: There is no compiler.
    """
    first, *_, last = _folders(asked, home)
    return server_sources.read(first) & server_sources.read(last)


def documents_of(jobs: Iterable[str], home: Home) -> list[RunDocument]:
    """Return the run documents of jobs, as far as they are there."""
    read = (_read(home.root / "jobs" / job / DOCUMENT_FILE) for job in jobs)
    return [document for document in read if document is not None]


def _folders(asked: Asked, home: Home) -> list[Path]:
    """Return where the artifact of each commit of the range is, or would be."""
    variant = asked.plan.build(asked.question.variant)
    toolchain = find_toolchain(variant)
    folder = home.folder("artifacts")
    return [
        folder / artifact_id(tree=tree, variant=variant, toolchain=toolchain)
        for tree in asked.range.trees
    ]


def _refuse_good_end(asked: Asked, document: RunDocument) -> None:
    """Raise DoorError if it is the good end that does not build: nothing can be told then."""
    if good_end_fails(document) and not is_hosts_fault(document):
        raise DoorError(
            f"{short(asked.question.good)}, the good end, does not build here "
            f"({reason(document)}); name another good commit"
        )


def _forget_failure(folder: Path) -> None:
    """Let a job without numbers be tried again; complete starts of a sound host are kept."""
    finished = folder / DOCUMENT_FILE
    document = _read(finished)
    if document is None:
        return
    if document.outcome is Outcome.UNSTABLE:
        shutil.rmtree(folder)
        folder.mkdir()
    elif document.outcome is Outcome.FAILED:
        finished.unlink()


def _read(path: Path) -> RunDocument | None:
    """Return a run document that is there and whole."""
    try:
        return RunDocument.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def _wall_seconds(document: RunDocument) -> float:
    return max(0.0, (document.finished_at - document.created_at).total_seconds())
