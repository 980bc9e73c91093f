"""Twenty-four commits of MariaDB built from source, one of them slow: the verb finds which.

Takes about an hour on two cores, a quarter of it the first build.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
from mariadb_fork import BROKEN, SLOW, LongBranch, MariadbFork, make_long_branch, make_mariadb_fork
from mariadb_source import obtain_source

from bisects.document import BisectDocument, CommitState
from reports.bisect import bisect_sentence
from runner import shell

pytestmark = [pytest.mark.forks, pytest.mark.timeout(4 * 3600)]

ROOM = Path(__file__).parents[2] / ".forkwatch" / "forks"
TIMEOUT_S = 3.5 * 3600


@pytest.fixture(scope="module")
def fork() -> MariadbFork:
    ROOM.mkdir(parents=True, exist_ok=True)
    return make_mariadb_fork(obtain_source(ROOM), ROOM / "bisected")


@pytest.fixture(scope="module")
def branch(fork: MariadbFork) -> LongBranch:
    return make_long_branch(fork)


@pytest.fixture(scope="module")
def found(fork: MariadbFork, branch: LongBranch) -> BisectDocument:
    words = [sys.executable, "-m", "forkwatch", "bisect", branch.commits[0], branch.commits[-1]]
    words += ["--workload", "scan", "--budget", "3h", "--json"]
    words += ["--repository", str(fork.repository), "--home", str(ROOM / "home")]
    began = time.monotonic()
    done = shell.run(words, timeout_s=TIMEOUT_S)
    assert done.stdout.strip(), done.stderr
    document = BisectDocument.model_validate(json.loads(done.stdout))
    minutes = (time.monotonic() - began) / 60
    tried = [one for one in document.commits if one.state is not CommitState.UNTRIED]
    sys.stdout.write(
        f"{done.stderr}\n{bisect_sentence(document)}\n{len(document.observations)} jobs, "
        f"{document.measured_starts} starts, {len(tried)} commits tried, {minutes:.1f} minutes\n"
    )
    return document


def test_the_slow_commit_is_named(found: BisectDocument) -> None:
    assert found.culprits == (SLOW,)


def test_documentation_is_not_measured(found: BisectDocument) -> None:
    touched = {observation.commit for observation in found.observations}

    assert not touched & {3, 9, 20}


def test_what_does_not_compile_is_said_so_where_it_was_tried(found: BisectDocument) -> None:
    for number in BROKEN:
        assert found.commits[number].state in {CommitState.UNTRIED, CommitState.BROKEN}
