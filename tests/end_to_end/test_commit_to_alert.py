"""From commits to an alert, with everything real: git, CMake, MariaDB, sysbench, SQLite, HTTP."""

from __future__ import annotations

import httpx
import pygit2
import pytest

from forkwatch.demo.fork import make_demo_fork
from tests.end_to_end.followed_fork import FollowedFork
from tests.runner.processes import servers, until

pytestmark = pytest.mark.alone

#: The demo's own suite takes six times as long. Half of the slices and half as many starts again
#: see more of a guest that wanders between starts, in less time.
SHORTER = {
    'workloads = ["scan", "point-query"]': 'workloads = ["scan"]',
    "rows = 200000": "rows = 50000",
    "slices = 2": "slices = 1",
    "warmup_seconds = 1": "warmup_seconds = 0",
    "confirm_starts = 8": "confirm_starts = 12",
}


def commit_shorter_plan(repository: pygit2.Repository) -> None:
    """Shorten the suite, in a commit that installs the same files as the one before."""
    path = "forkwatch.toml"
    text = repository[repository.head.peel().tree[path].id].data.decode()
    for old, new in SHORTER.items():
        assert old in text, old
        text = text.replace(old, new)
    index = repository.index
    index.read_tree(repository.head.peel().tree)
    index.add(pygit2.IndexEntry(path, repository.create_blob(text.encode()), 0o100644))
    who = pygit2.Signature("A Tester", "tester@example.com", 1_772_960_000, 0)
    repository.create_commit(
        "refs/heads/main", who, who, "Measure less", index.write_tree(), [repository.head.target]
    )


@pytest.fixture
def followed(tmp_path):
    fork = make_demo_fork(tmp_path / "fork")
    repository = pygit2.Repository(fork.repository)
    repository.reset(fork.slow, pygit2.enums.ResetMode.HARD)
    commit_shorter_plan(repository)
    followed = FollowedFork(fork.repository, tmp_path / "home", backfill_commits=3)
    followed.start()
    yield followed, fork
    followed.kill()
    followed.kill_runner()


def test_the_slow_commit_is_confirmed_and_alerted_and_the_others_stay_quiet(followed, tmp_path):
    service, fork = followed

    commits = service.wait_until_judged(3, seconds=500)

    by_sha = {commit["sha"]: commit for commit in commits}
    assert [commit["outcome"] for commit in commits] == ["baseline", "regression", "unchanged"]
    slow = by_sha[fork.slow]
    assert "scan is" in slow["reason"]
    (alert,) = service.get("/api/v1/alerts")
    assert alert["sha"] == fork.slow
    assert [item["workload"] for item in alert["workloads"]] == ["scan"]
    assert -0.5 < alert["workloads"][0]["effect"] < -0.08
    (path,) = (tmp_path / "home" / "alerts").glob("*.md")
    text = path.read_text()
    assert fork.slow[:8] in text
    assert "forkwatch compare" in text
    url = f"http://127.0.0.1:{service.port}"
    for page in ("/", f"/forks/demo-mariadb/commits/{fork.slow}", f"/alerts/{alert['id']}"):
        assert httpx.get(url + page, timeout=60).status_code == 200, page
    until(lambda: servers(tmp_path) == [])
