"""What a stranger's pull request tries beyond its build: the CI, plan, scripts, later builds."""

from __future__ import annotations

from typing import Any

import pytest

from results.document import Outcome, RunDocument
from runner import datasets, shell
from runner.job import run_job
from runner.settings import Home, RunnerSettings
from tests.runner.hostile_fork import INSTALL, Hostile
from tests.runner.tiny_fork import PLAN
from workloads.catalog import SCRIPTS

#: What a CI hands its jobs, and lets who holds it ask for the job's identity.
CI_SECRETS = (
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_URL",
    "ACTIONS_RUNTIME_TOKEN",
    "BUILDKITE_AGENT_ACCESS_TOKEN",
    "GITHUB_TOKEN",
)
ONE_WORKLOAD = PLAN.replace('["scan", "point-query", "update-index"]', '["point-query"]')
#: A plan that asks for other work, and takes any loss.
LOOSE = PLAN.replace('["scan", "point-query", "update-index"]', '["scan"]') + (
    "\n[gates]\ndefault = 0.9\n"
)


@pytest.fixture
def hostile(tiny_fork, own_home):
    yield Hostile(tiny_fork, own_home)
    # Where a test fails, pytest must be able to remove what the attack left.
    shell.run(["chmod", "-R", "u+rwX", str(own_home.root)], timeout_s=60)
    shell.run(["rm", "-rf", str(own_home.root)], timeout_s=60)


def test_a_build_finds_nothing_to_ask_the_ci_for_a_token_with(hostile, monkeypatch):
    secret = "correct-horse-battery"
    for name in CI_SECRETS:
        monkeypatch.setenv(name, secret)

    failure = hostile.failure(
        "import os\n"
        "for pid in filter(str.isdigit, os.listdir('/proc')):\n"
        "  for what in ('environ', 'cmdline'):\n"
        "    try:\n"
        "      print(what.upper(), open(f'/proc/{pid}/{what}').read())\n"
        "    except OSError:\n      pass\n"
        "print('OWN', dict(os.environ))\n"
        "raise SystemExit(1)\n",
        trusted=False,
    )

    assert "ENVIRON" in failure.log_tail
    assert "OWN" in failure.log_tail
    assert secret not in failure.log_tail
    assert not [name for name in CI_SECRETS if name in failure.log_tail]


def test_an_honest_artifact_is_the_same_whatever_a_stranger_built_before(hostile, tmp_path):
    """Names, compiler cache and build folders are the same for both; only the tree is another."""
    stranger = hostile.build(
        hostile.commit(
            "import os, subprocess\n"
            "open('/tmp/evil.c', 'w').write('int main(void) { return 7; }')\n"
            "for name in ('CCACHE_READONLY', 'CCACHE_TEMPDIR'):\n  os.environ.pop(name, None)\n"
            # The source of the honest launcher, compiled to something else.
            "subprocess.run(['ccache', 'cc', '-c', '/forkwatch/source/launcher.c',\n"
            "  '-include', '/tmp/evil.c', '-o', '/tmp/evil.o'], check=False)\n"
        ),
        trusted=False,
    )
    after = hostile.build(hostile.fork.first)
    alone = Hostile(hostile.fork, Home(tmp_path / "clean")).build(hostile.fork.first)

    assert stranger.facts.id != after.facts.id == alone.facts.id
    assert after.facts.content_hash == alone.facts.content_hash
    assert not after.facts.cached


def test_a_commit_brings_neither_a_plan_nor_scripts_of_its_own(tiny_fork, home, progress):
    """The order carries the plan, and the client's scripts are ours and lie outside the tree."""
    scripts = [path.relative_to(SCRIPTS).as_posix() for path in SCRIPTS.rglob("*.lua")]
    assert "point_query.lua" in scripts
    plant = (
        "import os\n"
        f"for name in {scripts!r}:\n"
        "  for folder in ('', 'scripts/', 'share/sysbench/', 'lib/lua/', 'data/'):\n"
        "    path = '/forkwatch/artifact/' + folder + name\n"
        "    os.makedirs(os.path.dirname(path), exist_ok=True)\n"
        "    open(path, 'w').write('error(\"planted\")')\n"
        "os.makedirs('/forkwatch/artifact/bin', exist_ok=True)\n"
        "open('/forkwatch/artifact/bin/sysbench', 'w').write('#!/bin/sh\\nexit 7\\n')\n"
        "os.chmod('/forkwatch/artifact/bin/sysbench', 0o755)\n"
    )
    tiny_fork.write({"forkwatch.toml": LOOSE, **dict.fromkeys(_tops(scripts), 'error("planted")')})
    sha = Hostile(tiny_fork, home).commit(plant, at=INSTALL)

    document = _done(tiny_fork.order(sha, plan=ONE_WORKLOAD, trusted=False), home, progress)

    assert document.outcome is Outcome.MEASURED, document.failure
    assert document.workloads() == ["point-query"]
    samples = document.samples("point-query", "throughput_ops_s")
    assert all(one > 0 for row in samples for one in row)


#: Says that it is of a release that nobody has yet.
LIAR = """\
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
  for (int n = 1; n < argc; n++)
    if (strcmp(argv[n], "--version") == 0) {
      puts("mariadbd  Ver 99.9.9-MariaDB for Linux on x86_64");
      return 0;
    }
  execv("/usr/sbin/mariadbd", argv);
  return 1;
}
"""


def test_a_stranger_fills_no_place_among_the_datasets_of_others(tiny_fork, own_home, progress):
    sha = tiny_fork.commit("lies", {"launcher.c": LIAR})
    order = tiny_fork.order(
        sha, baseline=tiny_fork.first, plan=ONE_WORKLOAD, starts=2, trusted=False
    )

    document = _done(order, own_home, progress)

    assert document.outcome is Outcome.MEASURED, document.failure
    assert [path for path in own_home.folder("datasets").iterdir() if path.is_dir()] == []
    outside = [path for path in own_home.folder(datasets.OUTSIDE).iterdir() if path.is_dir()]
    # One of the baseline's release, and one of a release that nobody has.
    assert len(outside) == 2


def _tops(names: list[str]) -> list[str]:
    """Return those names that lie in no folder."""
    return [name for name in names if "/" not in name]


def _done(order: Any, home: Home, progress: Any) -> RunDocument:
    settings = RunnerSettings(home=home.root, watch_host=False)
    folder = home.folder("jobs", order.job)
    return run_job(order, folder, home=home, settings=settings, progress=progress)
