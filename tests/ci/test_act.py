"""The workflow of the documentation, run by `act`: a push and a pull request, from event to exit.

Everything but the measuring is real here, and in the last test that too.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from forkwatch.demo.fork import make_demo_fork
from results.document import RunDocument
from results.metric import THROUGHPUT
from runner import shell
from tests.ci import recipes
from tests.ci.act import THEIRS, Actions, installing
from tests.ci.fork_history import FORKWATCH_PLAN, keep_usual, kept, own_run, propose
from tests.ci.forkwatch_double import program_text
from tests.fakes.git_fork import GitFork

# A run is several jobs, and one test installs forkwatch; the machine may be busy with others.
pytestmark = [pytest.mark.ci, pytest.mark.timeout(1800)]

#: Where a runner of GitHub's on a machine of one's own keeps what it has fetched, run after run.
FETCHED = Path("~/.cache").expanduser()


@pytest.fixture
def fork(tmp_path):
    return GitFork(tmp_path / "fork.git", plan=FORKWATCH_PLAN)


@pytest.fixture
def actions(tmp_path, fork):
    """Actions whose forkwatch is a commit that installs the double."""
    ours = tmp_path / "ours"
    version = installing(ours, program_text())
    return Actions(tmp_path / "github", fork=fork.folder, ours=ours, version=version)


def pushed(sha):
    return {
        "ref": "refs/heads/main",
        "after": sha,
        "repository": {"full_name": THEIRS, "name": "fork", "owner": {"login": "acme"}},
    }


def proposed(base, head, *, repository=THEIRS):
    return {
        "action": "opened",
        "number": 7,
        "pull_request": {
            "number": 7,
            "base": {"ref": "main", "sha": base, "repo": {"full_name": THEIRS}},
            "head": {"ref": "topic", "sha": head, "repo": {"full_name": repository}},
        },
        "repository": {"full_name": THEIRS, "name": "fork", "owner": {"login": "acme"}},
    }


def test_a_push_that_is_slow_is_suspected_confirmed_and_kept(fork, actions, tmp_path):
    keep_usual(fork, 5, host_class="default")
    slow = fork.push("Check every record speed=0.8")

    did = actions.run(
        "push", pushed(slow), commit=slow, env={"FORKWATCH_HOME": str(tmp_path / "home")}
    )

    assert did.jobs == {
        "measure": "success",
        "history": "success",
        "confirm": "failure",
        "keep": "success",
    }, did.text
    assert "scan is 19.7" in did.text
    names = sorted(path.name for path in actions.artifacts.rglob("*.json"))
    assert names == ["pair.json", "run.json"]
    series = own_run(fork, slow, "", 1, host_class="default").series("scan", THROUGHPUT.name)
    entry = kept(fork, series)[-1]
    assert (entry.sha, entry.kind, entry.begins) == (slow, "paired", True)


def test_a_push_without_a_change_ends_after_the_judge(fork, actions, tmp_path):
    keep_usual(fork, 5, host_class="default")
    sha = fork.push("more of the usual")

    did = actions.run(
        "push", pushed(sha), commit=sha, env={"FORKWATCH_HOME": str(tmp_path / "home")}
    )

    assert did.jobs["history"] == "success", did.text
    assert not list(actions.artifacts.rglob("pair.json")), did.text


def test_a_slow_pull_request_fails_by_the_plan_of_its_base(fork, actions, tmp_path):
    base = fork.push("base")
    loose = FORKWATCH_PLAN.replace("default = 0.05", "default = 0.9")
    head = propose(fork, "Check every record speed=0.8", parent=base, plan=loose)

    did = actions.run(
        "pull_request",
        proposed(base, head),
        commit=head,
        env={"FORKWATCH_HOME": str(tmp_path / "home")},
    )

    assert set(did.jobs.values()) == {"failure"}, did.text
    assert "scan is 19.7" in did.text


def test_a_strangers_pull_request_is_not_measured(fork, actions, tmp_path):
    base = fork.push("base")
    head = propose(fork, "Mine speed=0.8", parent=base, plan=FORKWATCH_PLAN)

    did = actions.run(
        "pull_request",
        proposed(base, head, repository="mallory/fork"),
        commit=head,
        env={"FORKWATCH_HOME": str(tmp_path / "home")},
    )

    assert not list(actions.artifacts.rglob("*.json")), did.text
    assert not (tmp_path / "home").exists()


def test_the_documented_lines_install_forkwatch_and_measure(tmp_path):
    made = make_demo_fork(tmp_path / "demo")
    bare, ours = tmp_path / "fork.git", tmp_path / "ours.git"
    for source, copy in ((tmp_path / "demo", bare), (recipes.ROOT, ours)):
        words = ["git", "clone", "--quiet", "--bare", str(source), str(copy)]
        assert shell.run(words, timeout_s=300).ok
    head = shell.run(["git", "-C", str(recipes.ROOT), "rev-parse", "HEAD"], timeout_s=120)
    actions = Actions(tmp_path / "github", fork=bare, ours=ours, version=head.stdout.strip())
    sha = made.commits[0]
    env = {
        "FORKWATCH_HOME": str(tmp_path / "home"),
        "PIP_CACHE_DIR": str(FETCHED / "pip"),
        "UV_CACHE_DIR": str(FETCHED / "uv"),
    }

    did = actions.run("push", pushed(sha), commit=sha, env=env)

    document = RunDocument.model_validate_json(
        (actions.artifacts / "forkwatch-run-default" / "run.json").read_text()
    )
    assert document.candidate.commit.sha == sha, did.text
    assert document.outcome.value == "measured", did.text
