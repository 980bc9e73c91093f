"""A real buildkite-agent on an enrolled host: its configuration, its hooks, one job and no more."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from forkwatch.enrolling import placing
from forkwatch.enrolling.agent_hooks import read_hooks
from forkwatch.enrolling.buildkite import AGENT_CONFIG, HOOKS, STATE
from forkwatch.enrolling.enrolment import Enrolment, System
from forkwatch.enrolling.placing import below
from forkwatch.enrolling.texts import files_of
from runner import shell
from tests.ci import tools
from tests.ci.forkwatch_double import program_text
from tests.fakes.buildkite_api import Build, BuildkiteApi
from tests.fakes.git_fork import GitFork
from tests.fakes.loopback import Loopback

pytestmark = pytest.mark.ci

SECONDS_MAX = 540


class Remembering(BuildkiteApi):
    """A Buildkite that remembers what the agent said of itself."""

    async def _register(self, request):
        self.told = await request.json()
        return await super()._register(request)


def test_a_real_agent_takes_the_configuration_does_one_job_and_goes(tmp_path):
    fork = GitFork(tmp_path / "fork.git")
    sha = fork.push("base")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "forkwatch").write_text(program_text())
    (tmp_path / "bin" / "forkwatch").chmod(0o755)
    enrolment = Enrolment(
        system=System.BUILDKITE,
        host_class="small",
        org="acme",
        program=tmp_path / "bin" / "forkwatch",
    )
    root = tmp_path / "root"
    root.mkdir()
    placing.place(root, enrolment, files_of(enrolment, read_hooks()), overwrite=False)
    # What a repository brings along does not run here.
    build = Build(str(fork.folder), sha, "main", "small")
    said = "class=$FORKWATCH_HOST_CLASS home=$FORKWATCH_HOME token=[$BUILDKITE_AGENT_TOKEN]"
    command = f'echo "{said}"'
    build.add([{"key": "first", "command": command}, {"key": "second", "command": "true"}])
    api = Remembering(build)

    # The path of a socket may have 108 characters.
    with Loopback(api.app) as there, tempfile.TemporaryDirectory(prefix="fw-") as state:
        api.url = there.url
        config = below(root, AGENT_CONFIG)
        text = config.read_text().replace(str(STATE), state)
        config.write_text(text.replace(str(HOOKS), str(below(root, HOOKS))))
        env = below(root, HOOKS / "agent.env")
        home = str(tmp_path / "home")
        env.write_text(env.read_text().replace(str(enrolment.home), home))
        done = shell.run(
            [
                *("env", f"HOME={state}", "BUILDKITE_AGENT_TOKEN=of-the-host"),
                *(str(tools.program("buildkite-agent")), "start", "--no-color"),
                *("--config", str(config), "--endpoint", f"{there.url}/v3"),
            ],
            timeout_s=SECONDS_MAX,
            cwd=tmp_path,
        )

    said = "\n".join([*(job.text for job in build.jobs), done.stdout[-4000:], done.stderr[-4000:]])
    # It went by itself after the first job; the second waits for the next agent.
    assert done.ok, said
    assert [job.exit_status for job in build.jobs] == [0, None], said
    assert build.unknown == [], said
    assert set(api.told["meta_data"]) == {"queue=small", "forkwatch=true"}
    assert api.told["name"].endswith("-small")
    # Its hooks ran, and the token of the host is not in the job's environment.
    assert f"class=small home={home} token=[]" in build.jobs[0].text
    # Nothing of the job is left.
    assert not [path for path in Path(state).glob("builds/*/*/*") if path.exists()]
