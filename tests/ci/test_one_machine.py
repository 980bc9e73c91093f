"""Everything on one machine: act and buildkite-agent do the running, the service does the rest.

The measuring is a double here, which finds what the subjects of commits say. With real servers a
commit goes the same way in `test_one_machine_measured.py`.
"""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from results.metric import THROUGHPUT
from service.core.clock import SystemClock
from tests.ci.fork_history import FORKWATCH_PLAN
from tests.ci.forkwatch_double import STUCK, program_text
from tests.ci.one_machine import one_machine
from tests.fakes.git_fork import GitFork

# A test waits for several jobs, and the first for the service too; the machine may be busy.
pytestmark = [pytest.mark.ci, pytest.mark.timeout(1800)]

CHECK = "forkwatch / commit"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("machine")


@pytest.fixture(scope="module")
def fork(folder):
    fork = GitFork(folder / "origin.git", plan=FORKWATCH_PLAN)
    for subject in ("Import", "Usual work", "More usual work"):
        fork.push(subject)
    return fork


@pytest.fixture(scope="module")
def machine(folder, fork):
    with one_machine(folder, fork.folder, program=program_text()) as machine:
        machine.judged(machine.head())
        yield machine


@pytest.fixture
def stuck(machine):
    """A file that makes the next measurement hang."""
    path = machine.runner_home / STUCK
    path.touch()
    yield path
    path.unlink(missing_ok=True)


def earlier():
    """Return a time before anything that is said from now on."""
    return SystemClock().now() - timedelta(minutes=1)


def events(commit, kind):
    return [event["message"] for event in commit["events"] if event["kind"] == kind]


def conclusions(runs):
    return [run["conclusion"] for run in runs]


def test_a_push_is_measured_by_a_dispatched_job_and_judged(machine, fork):
    sha = fork.push("more of the usual")

    commit = machine.push(sha)

    assert commit["commit"]["outcome"] == "no-change", machine.said()
    (run,) = machine.over(sha)
    assert run["conclusion"] == "success"
    assert machine.runner.did[run["id"]].jobs == {"job": "success"}, machine.said()
    (kept,) = commit["runs"]
    assert kept["host_class"] == "small"
    machine.until(lambda: machine.checks(sha) == [(CHECK, "completed", "success")])


def test_a_pull_request_gets_its_check_and_its_comment(machine, fork):
    number = machine.github.a_pull_request()
    head = fork.commit_aside("Slower speed=0.8", parent=machine.head())

    machine.pull(number, head, at=earlier())

    machine.until(lambda: machine.github.texts(number))
    assert machine.checks(head) == [(CHECK, "completed", "failure")], machine.said()
    (said,) = machine.github.texts(number)
    assert "scan is " in said
    assert f"git fetch origin pull/{number}/head" in said
    assert conclusions(machine.over(head)) == ["success"]


def test_a_strangers_pull_request_waits_for_a_maintainer(machine, fork):
    number = machine.github.a_pull_request()
    head = fork.commit_aside("Mine speed=0.8", parent=machine.head())

    machine.pull(number, head, at=earlier(), head_repository="mallory/mariadb-fork")
    machine.comment(number, "/forkwatch run", login="mallory")
    # What was begun for the stranger would go before this.
    machine.push(fork.push("in the meantime"))
    assert machine.runs_of(head) == []
    assert machine.checks(head) == []

    machine.comment(number, "/forkwatch run", login="ada")

    machine.until(lambda: any("scan is " in text for text in machine.github.texts(number)))
    assert machine.checks(head) == [(CHECK, "completed", "failure")], machine.said()
    assert conclusions(machine.over(head)) == ["success"]


def test_a_run_that_hangs_and_is_cancelled_is_dispatched_again(machine, fork, stuck):
    sha = fork.push("more of the usual, slowly")
    machine.tell_pushed(sha)
    machine.until(lambda: not stuck.exists())
    (hanging,) = machine.runs_of(sha)
    assert hanging["status"] == "in_progress"

    # Somebody presses the button on GitHub's page.
    assert machine.runner.cancel(hanging["id"])

    commit = machine.judged(sha)
    (lost,) = events(commit, "runner-lost")
    said = f"its run ended as 'cancelled' without a run document: {hanging['html_url']}"
    assert said in lost
    cancelled, again = machine.over(sha)
    assert conclusions([cancelled, again]) == ["cancelled", "success"]
    assert again["display_title"] == cancelled["display_title"].replace("attempt 1", "attempt 2")
    assert len(commit["runs"]) == len(commit["jobs"]) == 1


def test_a_run_on_a_host_of_another_class_is_dispatched_again(machine, fork):
    machine.hosts_say.append("large")
    sha = fork.push("more of the usual, elsewhere")

    commit = machine.push(sha)

    said = "it landed on a machine of the host class 'large' and was ordered for 'small'"
    (lost,) = events(commit, "runner-lost")
    assert said in lost
    elsewhere, here = machine.over(sha)
    assert conclusions([elsewhere, here]) == ["failure", "success"]
    assert {run["host_class"] for run in commit["runs"]} == {"small"}


def test_a_newer_head_ends_the_run_of_the_older_one(machine, fork, stuck):
    number, at = machine.github.a_pull_request(), earlier()
    older, newer = (
        fork.commit_aside(subject, parent=machine.head())
        for subject in ("Slower speed=0.8", "Fast again")
    )
    machine.pull(number, older, at=at)
    machine.until(lambda: not stuck.exists())

    later = {"action": "synchronize", "before": older, "at": at + timedelta(seconds=30)}
    machine.pull(number, newer, **later)

    machine.until(lambda: machine.checks(newer) == [(CHECK, "completed", "success")])
    assert conclusions(machine.over(older)) == ["cancelled"]
    assert conclusions(machine.over(newer)) == ["success"]


def test_a_suspicious_commit_is_confirmed_by_a_dispatched_pair(machine, fork):
    sha = fork.push("Check every record speed=0.8")

    commit = machine.push(sha)

    assert commit["commit"]["outcome"] == "regression", machine.said()
    assert re.search(r"scan is \d\d\.\d % slower", commit["commit"]["reason"])
    own, pair = machine.over(sha)
    assert own["display_title"].startswith(f"forkwatch single-{sha[:12]}-")
    assert pair["display_title"].startswith(f"forkwatch confirm-{sha[:12]}-")
    assert conclusions([own, pair]) == ["success", "success"]
    assert commit["alert"]["sha"] == sha
    issues = machine.github.world.issues
    machine.until(lambda: any(f"slower at {sha[:8]}" in issue["title"] for issue in issues))
    machine.until(lambda: machine.checks(sha) == [(CHECK, "completed", "failure")])


def test_two_host_classes_keep_separate_series(machine, fork):
    before = machine.judged(machine.head())["commit"]["sha"]
    sha = fork.push("The same fork on a slower machine speed=0.5")
    actions = len(machine.github.world.workflow_runs)

    machine.serve("large")
    commit = machine.push(sha)

    # Half as fast as on the other class, and no change: it is the first of its series.
    assert commit["commit"]["outcome"] == "baseline", machine.said()
    assert commit["alert"] is None
    (began,) = events(commit, "series-began")
    assert "host class" in began
    found = machine.get("/api/v1/series", fork="demo", workload="scan", metric=THROUGHPUT.name)
    measured = {
        one["host_class"]: [
            point["sha"] for point in machine.get(f"/api/v1/series/{one['id']}")["points"]
        ]
        for one in found
    }
    assert measured["large"] == [sha]
    assert sha not in measured["small"]
    assert before in measured["small"]
    # The agent did that, and measures the last commit of the other series for the bridge.
    assert len(machine.github.world.workflow_runs) == actions
    machine.until(lambda: [one["state"] for one in machine.rest.builds] == ["passed", "passed"])
