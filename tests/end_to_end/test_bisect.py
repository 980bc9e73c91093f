"""From two commits to the culprit, with everything real: git, CMake, MariaDB, sysbench."""

from __future__ import annotations

import pytest

from bisects.document import BisectEnd, CommitState
from forkwatch.bisect_jobs import artifacts_of, kept, measure_here
from forkwatch.bisect_question import question_of
from forkwatch.bisecting import run, search_of
from forkwatch.demo.fork import make_demo_fork
from forkwatch.watching import LogProgress
from reports.bisect import bisect_sentence
from runner.settings import Home, RunnerSettings
from tests.runner.processes import servers, until

pytestmark = pytest.mark.alone

#: The demo's own suite takes three times as long.
SHORTER = {
    "rows = 200000": "rows = 50000",
    "slices = 2": "slices = 1",
    "warmup_seconds = 1": "warmup_seconds = 0",
}


@pytest.fixture
def plan(tmp_path):
    fork = make_demo_fork(tmp_path / "fork")
    text = (fork.repository / "forkwatch.toml").read_text()
    for old, new in SHORTER.items():
        assert old in text, old
        text = text.replace(old, new)
    path = tmp_path / "shorter.toml"
    path.write_text(text)
    return fork, path


def test_the_slow_commit_of_the_demo_fork_is_named(plan, tmp_path):
    fork, path = plan
    home = Home(tmp_path / "home")
    settings = RunnerSettings(home=home.root, watch_host=False)
    asked = question_of(
        repository=fork.repository,
        plan_path=path,
        good=fork.commits[0],
        bad=fork.commits[-1],
        workload="scan",
        suite="commit",
        stop=0.95,
        budget_minutes=30.0,
        starts_each=2,
        seed=0,
        host_class="default",
    )
    measure = measure_here(home, settings, LogProgress())
    search = search_of(asked, artifacts_of(asked, home))

    found = run(asked, search, measure=measure, tell=lambda now: print(bisect_sentence(now)))

    assert found.end is BisectEnd.CULPRIT, bisect_sentence(found)
    (culprit,) = found.culprits
    assert found.commits[culprit].sha == fork.slow
    assert -0.5 < found.effect < -0.08
    broken = fork.commits.index(fork.broken)
    assert found.commits[broken].state in {CommitState.BROKEN, CommitState.UNTRIED}
    until(lambda: servers(tmp_path) == [])

    # Asked again everything is there: the same answer, and not one job is measured anew.
    jobs = {one: one.stat().st_mtime_ns for one in home.root.glob("jobs/*/run.json")}
    search = search_of(asked, artifacts_of(asked, home), kept(asked, home))
    again = run(asked, search, measure=measure, tell=lambda now: None)
    assert again.culprits == found.culprits
    assert again.minutes_spent == 0
    assert jobs == {one: one.stat().st_mtime_ns for one in home.root.glob("jobs/*/run.json")}
