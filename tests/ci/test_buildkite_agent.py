"""A real buildkite-agent does a whole build: our hooks, pipeline, history and annotation."""

from __future__ import annotations

import tempfile

import pytest

from results.metric import THROUGHPUT
from runner import shell
from tests.ci import recipes, tools
from tests.ci.fork_history import FORKWATCH_PLAN, HISTORY, keep_usual, kept, own_run, propose
from tests.ci.forkwatch_double import NOISY, program_text
from tests.fakes.buildkite_api import Build, BuildkiteApi
from tests.fakes.git_fork import GitFork
from tests.fakes.loopback import Loopback
from tests.fakes.scripted_measurement import PLAN

pytestmark = [pytest.mark.ci, pytest.mark.timeout(1800)]

#: An hour glass for a build that hangs; two processors that are busy with other tests are slow.
SECONDS_MAX = 1500


@pytest.fixture
def fork(tmp_path):
    return GitFork(tmp_path / "fork.git", plan=FORKWATCH_PLAN)


def run_agent(build, folder, *, noisy=False, answer="accept"):
    """Let an agent do all that there is to do, until it is idle."""
    bin_folder, hooks = folder / "bin", folder / "hooks"
    bin_folder.mkdir()
    hooks.mkdir()
    program = bin_folder / "forkwatch"
    program.write_text(program_text())
    program.chmod(0o755)
    for hook in (recipes.ROOT / ".buildkite" / "agent-hooks").iterdir():
        (hooks / hook.name).symlink_to(hook)
    (hooks / "agent.env").write_text(
        f"FORKWATCH_HOME={folder / 'home'}\nexport FORKWATCH_NOISY_HOST={answer}\n"
    )
    (folder / "home").mkdir()
    if noisy:
        (folder / "home" / NOISY).touch()
    api = BuildkiteApi(build)
    # The path of a socket may have 108 characters.
    with Loopback(api.app) as there, tempfile.TemporaryDirectory(prefix="fw-") as sockets:
        api.url = there.url
        options = {
            "--endpoint": f"{there.url}/v3",
            "--token": "registration",
            "--name": "bench-1",
            "--tags": f"queue={build.queue}",
            "--build-path": folder / "builds",
            "--hooks-path": hooks,
            "--plugins-path": folder / "plugins",
            "--sockets-path": sockets,
            "--disconnect-after-idle-timeout": 1,
        }
        words = [str(word) for pair in options.items() for word in pair]
        return shell.run(
            [
                *("sh", "-c", 'HOME="$1" PATH="$0:$PATH"; export HOME PATH; shift; exec "$@"'),
                *(str(bin_folder), str(folder)),
                *(str(tools.program("buildkite-agent")), "start", "--no-color", "--no-local-hooks"),
                *words,
            ],
            timeout_s=SECONDS_MAX,
            cwd=folder,
        )


def told(build, done):
    """Return everything that was said, for whoever looks after a failing test."""
    logs = [f"--- {job.key}: {job.state} {job.exit_status}\n{job.text}" for job in build.jobs]
    return "\n".join([*logs, done.stdout[-4000:], done.stderr[-4000:]])


def pushed(fork, sha, **env):
    build = Build(str(fork.folder), sha, "main", "small", env=env)
    upload = "buildkite-agent pipeline upload"
    command = f"forkwatch pipeline --host-class small --history {HISTORY} | {upload}"
    build.add([{"key": "forkwatch", "command": command}])
    return build


def test_a_slow_commit_is_suspected_confirmed_and_kept(fork, tmp_path):
    keep_usual(fork, 5)
    slow = fork.push("Check every record speed=0.8")
    build = pushed(fork, slow)

    done = run_agent(build, tmp_path)

    said = told(build, done)
    confirm = f"forkwatch-confirm-small-{slow[:12]}"
    statuses = {job.key: job.exit_status for job in build.jobs}
    assert statuses == {
        "forkwatch": 0,
        "forkwatch-run-small": 0,
        "forkwatch-history-small": 0,
        confirm: 1,
        f"{confirm}-kept": 0,
    }, said
    assert build.unknown == [], said
    names = [(one.job.key, one.data["path"]) for one in build.artifacts]
    assert names == [
        ("forkwatch-run-small", "forkwatch-run.json"),
        (confirm, "forkwatch-pair.json"),
    ]
    (context, annotation), *others = build.annotations.items()
    assert (context, annotation["style"], others) == ("forkwatch-small", "error", [])
    assert "scan is 19.7" in annotation["body"]
    assert "% slower" in annotation["body"]
    entry = kept(fork, own_run(fork, slow, "", 1).series("scan", THROUGHPUT.name))[-1]
    assert (entry.sha, entry.kind, entry.begins) == (slow, "paired", True)
    # Nothing of a job is left for the next one.
    assert not list((tmp_path / "builds").glob("bench-1/acme/*"))


def test_a_commit_without_a_change_ends_after_the_judge(fork, tmp_path):
    keep_usual(fork, 5)
    build = pushed(fork, fork.push("more of the usual"))

    done = run_agent(build, tmp_path)

    said = told(build, done)
    assert [job.exit_status for job in build.jobs] == [0, 0, 0], said
    assert build.annotations["forkwatch-small"]["style"] == "info", said


def test_a_pull_request_is_compared_with_its_merge_base_by_the_bases_plan(fork, tmp_path):
    base = fork.push("base")
    loose = FORKWATCH_PLAN.replace("default = 0.05", "default = 0.9")
    head = propose(fork, "Check every record speed=0.8", parent=base, plan=loose)
    fork.push("later speed=0.7")
    env = {
        "BUILDKITE_PULL_REQUEST": "7",
        "BUILDKITE_PULL_REQUEST_BASE_BRANCH": "main",
        "BUILDKITE_PULL_REQUEST_REPO": str(fork.folder),
        # What a shell or the upload would obey, were it pasted somewhere.
        "BUILDKITE_BRANCH": "$(touch pwned)`touch pwned`",
    }
    build = pushed(fork, head, **env)

    done = run_agent(build, tmp_path)

    said = told(build, done)
    pair = build.job("forkwatch-pair-small")
    assert pair.exit_status == 1, said
    assert "$BUILDKITE_COMMIT" in str(pair.step["command"]), "the upload filled it in"
    assert "scan is 19.7" in build.annotations["forkwatch-small"]["body"], said
    assert not list(tmp_path.rglob("pwned"))


def test_a_noisy_host_ends_the_job_with_3_where_the_host_says_so(fork, tmp_path):
    build = pushed(fork, fork.push("base"))

    done = run_agent(build, tmp_path, noisy=True, answer="refuse")

    (job,) = build.jobs
    assert job.exit_status == 3, told(build, done)
    assert "governor: powersave" in job.text


def test_a_noisy_host_is_said_and_used_otherwise(fork, tmp_path):
    build = pushed(fork, fork.push("base"))

    done = run_agent(build, tmp_path, noisy=True)

    assert [job.exit_status for job in build.jobs] == [0, 0, 0], told(build, done)
    assert "governor: powersave" in build.jobs[0].text


@pytest.fixture
def documented(tmp_path):
    """A fork of one host class, and builds of it by the lines of the documentation as they are."""
    fork = GitFork(tmp_path / "fork.git", plan=f"{PLAN}\n[hosts.small]\n")

    def build(sha, **env):
        made = Build(str(fork.folder), sha, "main", "small", env=env)
        made.add(recipes.parsed(recipes.example("buildkite.md"))["steps"])
        return made

    return fork, build


def test_the_documented_lines_measure_and_judge_a_push(documented, tmp_path):
    fork, build_of = documented
    sha = fork.push("Import")
    build = build_of(sha)

    done = run_agent(build, tmp_path)

    statuses = {job.key: job.exit_status for job in build.jobs}
    assert statuses == {
        "step-0": 0,
        "forkwatch-run-small": 0,
        "forkwatch-history-small": 0,
    }, told(build, done)
    (entry,) = kept(fork, own_run(fork, sha, "", 1).series("scan", THROUGHPUT.name))
    assert entry.sha == sha


def test_the_documented_lines_compare_a_pull_request_by_the_plan_of_its_base(documented, tmp_path):
    fork, build_of = documented
    base = fork.push("base")
    loose = PLAN.replace("default = 0.05", "default = 0.9")
    head = propose(fork, "Check every record speed=0.8", parent=base, plan=loose)
    build = build_of(
        head,
        BUILDKITE_PULL_REQUEST="7",
        BUILDKITE_PULL_REQUEST_BASE_BRANCH="main",
        BUILDKITE_PULL_REQUEST_REPO=str(fork.folder),
    )

    done = run_agent(build, tmp_path)

    # The loose plan has no host class of its own: the steps are those of the base's plan.
    statuses = {job.key: job.exit_status for job in build.jobs}
    assert statuses == {"step-0": 0, "forkwatch-pair-small": 1}, told(build, done)
