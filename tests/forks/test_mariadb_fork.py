"""The real thing: forkwatch follows a fork of MariaDB built from source, and finds its slow commit.

Takes about an hour on two cores, most of it the first build and the measuring. Sources, compiler
cache and artifacts are kept in `.forkwatch/forks`, so a second run spends its time measuring.
"""

from __future__ import annotations

import shutil
import socket
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from mariadb_fork import MariadbFork, make_mariadb_fork
from mariadb_source import obtain_source

from runner import shell

pytestmark = [pytest.mark.forks, pytest.mark.timeout(4 * 3600)]

ROOM = Path(__file__).parents[2] / ".forkwatch" / "forks"
#: Kept in the home between runs of this test; everything else there is a result.
KEPT = {"artifacts", "ccache", "datasets"}
PATIENCE_S = 3.5 * 3600
POLL_S = 5.0


@pytest.fixture(scope="module")
def fork() -> MariadbFork:
    ROOM.mkdir(parents=True, exist_ok=True)
    return make_mariadb_fork(obtain_source(ROOM), ROOM / "fork")


@pytest.fixture(scope="module")
def judged(fork: MariadbFork) -> dict[str, dict[str, Any]]:
    """Run the service until every commit is finished; return each commit as the API shows it."""
    home = ROOM / "home"
    home.mkdir(exist_ok=True)
    for path in home.iterdir():
        if path.name not in KEPT:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    port = _free_port()
    words = [sys.executable, "-m", "forkwatch", "serve", "--home", str(home)]
    words += ["--repository", str(fork.repository), "--port", str(port)]
    log = ROOM / "service.log"
    with log.open("wb") as output:
        service = shell.start(words, output=output)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", timeout=30) as api:
            _wait_until_finished(api, fork, service, log)
            views = {sha: api.get(f"/commits/mariadb/{sha}").json() for sha in fork.commits}
    finally:
        service.kill()
        _end_runners(home)
    table = _table(fork, views)
    (ROOM / "verdicts.txt").write_text(table)
    sys.stdout.write(table)
    return views


def test_the_slow_commit_is_a_regression_for_scan(
    fork: MariadbFork, judged: dict[str, dict[str, Any]]
) -> None:
    found = _said(judged[fork.slow])["scan"]

    assert judged[fork.slow]["commit"]["outcome"] == "regression"
    assert found["stage"] == "confirm"
    assert found["decision"] == "regression"


def test_the_slow_commit_is_no_change_for_point_query(
    fork: MariadbFork, judged: dict[str, dict[str, Any]]
) -> None:
    assert _said(judged[fork.slow])["point-query"]["decision"] == "no-change"


def test_nothing_else_is_called_a_regression(
    fork: MariadbFork, judged: dict[str, dict[str, Any]]
) -> None:
    called = {sha for sha in fork.commits if judged[sha]["commit"]["outcome"] == "regression"}
    workloads = {
        workload
        for workload, verdict in _said(judged[fork.slow]).items()
        if verdict["decision"] == "regression"
    }

    assert called == {fork.slow}
    assert workloads == {"scan"}


def test_one_alert_is_open_and_it_is_about_the_slow_commit(
    fork: MariadbFork, judged: dict[str, dict[str, Any]]
) -> None:
    alerts = {sha: judged[sha]["alert"] for sha in fork.commits if judged[sha]["alert"]}

    assert list(alerts) == [fork.slow]
    assert [item["workload"] for item in alerts[fork.slow]["workloads"]] == ["scan"]


def test_commits_that_cannot_be_measured_say_why(
    fork: MariadbFork, judged: dict[str, dict[str, Any]]
) -> None:
    assert judged[fork.docs_only]["commit"]["outcome"] == "unchanged"
    assert judged[fork.broken]["commit"]["outcome"] == "build-failed"


def _wait_until_finished(
    api: httpx.Client, fork: MariadbFork, service: shell.Process, log: Path
) -> None:
    deadline = time.monotonic() + PATIENCE_S
    states: list[str] = []
    while time.monotonic() < deadline:
        assert service.poll() is None, f"the service ended:\n{shell.tail(log)}"
        try:
            found = api.get("/commits", params={"fork": "mariadb"}).raise_for_status().json()
        except httpx.ConnectError:
            found = []
        states = [commit["state"] for commit in found]
        if states == ["finished"] * len(fork.commits):
            return
        time.sleep(POLL_S)
    pytest.fail(f"not finished after {PATIENCE_S / 3600} hours: {states}\n{shell.tail(log)}")


def _said(view: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the last word about throughput for each workload; a confirm's is the last."""
    verdicts = [
        verdict for verdict in view["verdicts"] if verdict["series"]["metric"] == "throughput_ops_s"
    ]
    verdicts.sort(key=lambda verdict: verdict["stage"] == "confirm")
    return {verdict["series"]["workload"]: verdict for verdict in verdicts}


def _table(fork: MariadbFork, views: dict[str, dict[str, Any]]) -> str:
    """Return every last word as text, for the person who writes the closing note."""
    lines = []
    for sha in fork.commits:
        commit = views[sha]["commit"]
        lines.append(f"{sha[:12]} {commit['outcome']:<13} {commit['subject']}")
        lines += [
            f"    {workload:<14} {verdict['stage']:<8} {verdict['decision']:<13} "
            f"log ratio {verdict['effect']:+.4f} [{verdict['low']:+.4f}, {verdict['high']:+.4f}] "
            f"starts {verdict['n_baseline']}+{verdict['n_candidate']}"
            for workload, verdict in _said(views[sha]).items()
        ]
    return "\n".join(lines) + "\n"


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _end_runners(home: Path) -> None:
    """End runners of this home: they outlive the service on purpose, but not this test."""
    for process in psutil.process_iter(["cmdline"]):
        if any(str(home) in word for word in process.info["cmdline"] or ()):
            process.terminate()
