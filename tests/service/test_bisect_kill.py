"""`kill -9` in the middle of a bisect: nothing is lost, measured or counted twice."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from bisects.document import BisectEnd
from service.core.bisections import BisectJobState, BisectState
from service.core.settings import load_settings
from service.flows.bisect_material import search_of
from service.store import bisect_jobs, bisects
from service.store.database import Database
from tests.fakes.git_fork import GitFork
from tests.fakes.warm_process import WarmProcess

if TYPE_CHECKING:
    from pathlib import Path

    from service.core.bisections import Bisect

BRANCH = ("Import", "Quiet", "Slower speed=0.9", "After it speed=0.9")
#: The act after which each life ends: a runner is started, looked at, collected from, a time is
#: noted in a step.
LIVES = ("start:1", "status:3", "collect:1", "now:5")
PATIENCE_SECONDS = 180


def live(home: Path, fork: GitFork, last_act: str) -> int:
    """Run the program until it dies or is done; return how it ended."""
    words = (str(home), str(fork.folder), last_act)
    process = WarmProcess("tests.fakes.mortal_bisects", *words, log=home.parent / "log")
    return process.wait(timeout=PATIENCE_SECONDS)


def test_killed_again_and_again_a_bisect_comes_to_its_answer(tmp_path: Path) -> None:
    fork = GitFork(tmp_path / "fork.git")
    shas = [fork.push(subject) for subject in BRANCH]
    home = tmp_path / "home"

    deaths = [live(home, fork, act) for act in LIVES]
    ended = live(home, fork, "never:0")

    assert ended == 0, (tmp_path / "log").read_text()
    # A life may find everything done before its act comes, and then ends well.
    assert deaths.count(-signal.SIGKILL) >= len(LIVES) - 1
    database = Database(load_settings(home=home).data_url)
    try:
        check(database, home, shas)
    finally:
        database.close()


def check(database: Database, home: Path, shas: list[str]) -> None:
    with database.reading() as session:
        found: list[Bisect] = bisects.newest(session)
        [bisect] = found
        jobs = bisect_jobs.of_bisect(session, bisect.id)
        document = bisects.document(session, bisect.id)
        material = bisects.material(session, bisect.id)
    assert document is not None
    assert (bisect.state, document.end, document.culprits) == (
        BisectState.OVER,
        BisectEnd.CULPRIT,
        (2,),
    )
    assert document.commits[2].sha == shas[2]
    # Runners outlive the service, so each job was measured once, whoever asked for it again.
    assert {job.state for job in jobs} == {BisectJobState.OBSERVED}
    assert {job.attempts for job in jobs} == {1}
    started = {path.name for path in (home / "jobs").iterdir()}
    assert started == {job.id for job in jobs}
    # What is stored replays to the same answer.
    observations = [job.observation for job in jobs if job.observation is not None]
    assert document.observations == tuple(observations)
    assert search_of(bisect.question, material, observations).document() == document
