"""A whole demo run, service or runner killed at ten random moments (`make test-kills`)."""

from __future__ import annotations

import json
import random
import sqlite3
import time

import pytest

from forkwatch.demo.fork import make_demo_fork
from tests.end_to_end.followed_fork import FollowedFork
from tests.runner.processes import servers, until

pytestmark = pytest.mark.alone

KILLS = 10
#: Between kills, so that ten of them fall into the time that a demo run takes.
PAUSES_S = (4.0, 40.0)


@pytest.mark.kills
def test_nothing_is_lost_or_doubled_or_left_running(tmp_path):
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    dice = random.Random(seed)
    fork = make_demo_fork(tmp_path / "fork")
    followed = FollowedFork(fork.repository, tmp_path / "home", runner_attempts_max=KILLS + 1)
    followed.start()
    try:
        kills = []
        while len(kills) < KILLS:
            time.sleep(dice.uniform(*PAUSES_S))
            if dice.random() < 0.5:
                followed.kill()
                kills.append("service")
                time.sleep(dice.uniform(0, 3))
                followed.start()
            elif followed.kill_runner():
                kills.append("runner")
            print(f"{len(kills)} kills; states", [one["state"][:4] for one in followed.commits()])
        commits = followed.wait_until_judged(len(fork.commits), seconds=2400)
    finally:
        followed.kill()
        followed.kill_runner()

    print("killed:", kills)
    for commit in commits:
        print(commit["sha"][:8], commit["outcome"], commit["reason"])
    until(lambda: servers(tmp_path) == [], seconds=30)
    outcomes = {commit["sha"]: commit["outcome"] for commit in commits}
    assert outcomes[fork.slow] == "regression"
    assert outcomes[fork.broken] == "build-failed"
    assert outcomes[fork.docs_only] == "unchanged"
    assert "failed" not in outcomes.values()
    store = sqlite3.connect(tmp_path / "home" / "service.sqlite")
    jobs = store.execute("SELECT count(*), count(DISTINCT id) FROM jobs").fetchone()
    runs = store.execute("SELECT count(*), count(DISTINCT job) FROM runs").fetchone()
    finished = store.execute(
        "SELECT sha, count(*) FROM events WHERE kind = 'finished' GROUP BY sha"
    )
    assert jobs == runs, "every job has one run"
    assert dict(finished) == dict.fromkeys(fork.commits, 1)
    assert store.execute("SELECT count(*) FROM alerts").fetchone() == (1,)
    assert len(list((tmp_path / "home" / "alerts").glob("*.md"))) == 1
    for folder in (tmp_path / "home" / "jobs").iterdir():
        document = json.loads((folder / "run.json").read_text())
        assert [start["index"] for start in document["starts"]] == list(
            range(len(document["starts"]))
        ), "no start is measured twice"
    store.close()
