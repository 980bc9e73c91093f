"""The action checks what it was given, and leaves a job with the one program it needs."""

from __future__ import annotations

import pytest

from runner import shell
from tests.ci import recipes

OTHER = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def job(tmp_path):
    """A job's own folder, as GitHub's runner makes it."""
    for name in ("env", "path"):
        (tmp_path / name).touch()
    return tmp_path


def install(job, *, version="", host_class="small", home=""):
    variables = {
        "GITHUB_ACTION_PATH": recipes.ACTION.parent,
        "GITHUB_ENV": job / "env",
        "GITHUB_PATH": job / "path",
        "RUNNER_TEMP": job / "temp",
        "VERSION": version,
        "HOST_CLASS": host_class,
        "HOME_FOLDER": home,
    }
    words = [f"{name}={value}" for name, value in variables.items()]
    return shell.run(["env", *words, str(recipes.ACTION.parent / "install")], timeout_s=600)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"host_class": "a b"}, "host-class"),
        ({"host_class": "small\nFORKWATCH_HOME=/x"}, "host-class"),
        ({"host_class": ""}, "host-class"),
        ({"home": "relative"}, "home has to be an absolute path"),
        ({"home": "/x\nPATH=/y"}, "home has to be an absolute path"),
        ({"version": "main"}, "full hash"),
        ({"version": OTHER}, "not what was checked out"),
    ],
)
def test_what_a_job_was_given_is_checked_before_anything_is_done(job, given, said):
    done = install(job, **given)

    assert done.returncode == 2
    assert done.stdout.startswith("::error::forkwatch: ")
    assert said in done.stdout
    assert (job / "env").read_text() == ""
    assert not (job / "temp").exists()


@pytest.mark.ci
def test_a_job_gets_the_command_its_host_class_and_its_home(job):
    head = shell.run(["git", "-C", str(recipes.ROOT), "rev-parse", "HEAD"], timeout_s=120)
    done = install(job, version=head.stdout.strip(), home="/var/lib/forkwatch")

    assert done.ok, done.stdout + done.stderr
    folder = (job / "path").read_text().strip()
    assert (job / "env").read_text().splitlines() == [
        "FORKWATCH_HOST_CLASS=small",
        "FORKWATCH_HOME=/var/lib/forkwatch",
    ]
    said = shell.run(["env", "-i", f"{folder}/forkwatch", "--help"], timeout_s=120)
    assert said.ok, said.stderr
    assert "compare" in said.stdout
    assert [path.name for path in (job / "temp" / "forkwatch" / "bin").iterdir()] == ["forkwatch"]
