"""Commits of the branch on GitHub: from waiting to their outcome, once, and never back."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest
from dbos import DBOS

from reports.check import Conclusion
from service.app.compose import compose
from service.core.model import CommitOutcome, CommitState
from service.core.settings import load_settings
from service.store import commits, migrate
from tests.fakes.commit_world import a_commit_world, until, until_quiet
from tests.fakes.github_api.credentials import USER_TOKEN
from tests.fakes.github_api.opened import REPOSITORY, a_github
from tests.fakes.github_api.rules import Reply
from tests.fakes.github_api.server import DoubleServer
from tests.fakes.memory_fork import AT, MemoryAlerts, StillClock
from tests.fakes.memory_pulls import MemoryChecks, MemoryPulls, Mood, PatientRunners

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reports.check import CheckText
    from tests.fakes.commit_world import CommitWorld
    from tests.fakes.github_api.opened import OpenedGitHub
    from tests.fakes.postgres_server import PostgresServer

LOST = Reply(status=502, body={"message": "Server Error"})
BRANCH = (
    "Import",
    "Quiet",
    "Does not build outcome=build-failed",
    "Documentation outcome=unchanged",
    "Looked slow luck=0.88",
    "Its runner is always lost lose=99",
    "Slower scan speed=0.9",
    "Its pair is lost speed=0.8 loseconfirm=99",
    "Faster again speed=1.05",
    "The host was noisy outcome=unstable",
)


@pytest.fixture(scope="module")
def server() -> Iterator[DoubleServer]:
    with DoubleServer() as started:
        yield started


@pytest.fixture
def github(server: DoubleServer) -> Iterator[OpenedGitHub]:
    with a_github(server) as opened:
        yield opened


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str | None:
    """Address of a database of each kind; None where the home folder has it."""
    if request.param == "sqlite":
        return None
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_database(like=request.getfixturevalue("postgres_template"))


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def walked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[CheckText]:
    """Walk a branch to its end; return what its commits show then."""
    chosen: dict[str, Any] = {}
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        chosen["url"] = server.new_database()
    checks, fork = MemoryChecks(Mood()), MemoryPulls(*BRANCH)
    home = tmp_path_factory.mktemp("walked") / "home"
    with a_commit_world(fork, home, checks=checks, **chosen) as world:
        world.look()
        until_quiet()
    # One check for each commit, whatever it showed on the way.
    return [check for commit in fork.commits for check in checks.of(commit.sha)]


def statuses(github: OpenedGitHub, sha: str) -> list[tuple[str, str]]:
    return [
        (status["state"], status["description"])
        for on, status in github.world.statuses
        if on == sha
    ]


def runs_of(github: OpenedGitHub, sha: str) -> list[tuple[str, str | None, str]]:
    return [
        (run["status"], run["conclusion"], run["output"]["title"])
        for run in github.world.check_runs
        if run["head_sha"] == sha
    ]


def test_each_outcome_has_its_colour(walked: list[CheckText]) -> None:
    assert [check.conclusion for check in walked] == [
        Conclusion.NEUTRAL,
        Conclusion.SUCCESS,
        Conclusion.FAILURE,
        Conclusion.SUCCESS,
        Conclusion.SUCCESS,
        Conclusion.NEUTRAL,
        Conclusion.FAILURE,
        Conclusion.NEUTRAL,
        Conclusion.SUCCESS,
        Conclusion.NEUTRAL,
    ]


def test_each_title_says_what_came_of_the_commit(walked: list[CheckText]) -> None:
    titles = [check.title for check in walked]

    assert titles[0].startswith("first run of scan, point-query")
    assert titles[1].startswith("point-query and scan unchanged within ")
    assert "does not build" in titles[2]
    assert "installs the same files" in titles[3]
    assert "unchanged within" in titles[4]
    assert "brought no run after 3 attempts" in titles[5]
    assert titles[6].startswith("scan is ")
    assert "slower" in titles[6]
    assert "faster" in titles[8]
    assert "unstable host" in titles[9]


def test_a_quiet_commit_has_the_table_of_its_own_run(walked: list[CheckText]) -> None:
    quiet = walked[1].summary

    assert "| point-query |" in quiet
    assert "| no-change |" in quiet
    assert "forkwatch run 0000" in quiet
    assert "/forks/demo/commits/" in quiet


def test_a_slower_commit_has_the_table_of_the_pair(walked: list[CheckText]) -> None:
    slower = walked[6].summary

    assert "| regression |" in slower
    assert "forkwatch compare 0000" in slower


def test_a_suspicion_that_nothing_confirmed_is_no_loss(walked: list[CheckText]) -> None:
    unconfirmed = walked[7]

    assert "not confirmed" in unconfirmed.summary
    assert "| inconclusive |" in unconfirmed.summary
    assert "| regression |" not in unconfirmed.summary


def test_a_check_run_goes_from_queued_to_its_conclusion(
    github: OpenedGitHub, tmp_path: Path, url: str | None
) -> None:
    fork = MemoryPulls("Import", "Quiet", "Quiet too", "Slower speed=0.9 wait=yes", "Last")
    slower, last = (commit.sha for commit in fork.commits[3:])
    alone = github.client.alone
    with a_commit_world(fork, tmp_path / "home", checks=github.checks, alone=alone, url=url) as w:
        w.look()
        until(lambda: runs_of(github, slower)[:1] and titled(github, slower, "is being built"))
        until(lambda: runs_of(github, last))
        assert runs_of(github, slower) == [("in_progress", None, "is being built and measured")]
        assert runs_of(github, last) == [("queued", None, "waits for the commits before it")]

        w.release()
        until(lambda: titled(github, slower, "is being measured again"))
        assert [status for status, _, _ in runs_of(github, slower)] == ["in_progress"]

        w.release()
        until_quiet()
    # No commit has a second one.
    assert [run["head_sha"] for run in github.world.check_runs] == list(
        dict.fromkeys(run["head_sha"] for run in github.world.check_runs)
    )
    ((status, conclusion, title),) = runs_of(github, slower)
    assert (status, conclusion) == ("completed", "failure")
    assert title.startswith("scan is ")
    ((*done, _),) = runs_of(github, last)
    assert done == ["completed", "success"]
    (run,) = [run for run in github.world.check_runs if run["head_sha"] == slower]
    assert (run["name"], run["external_id"]) == ("forkwatch / commit", "commit:demo")
    assert run["details_url"] == f"{w.settings.pages_url}/forks/demo/commits/{slower}"


def titled(github: OpenedGitHub, sha: str, words: str) -> bool:
    return any(title.startswith(words) for _, _, title in runs_of(github, sha))


def test_with_a_token_it_is_a_status_that_is_said_once(
    github: OpenedGitHub, tmp_path: Path, url: str | None
) -> None:
    fork = MemoryPulls("Import", "Quiet", "Does not build outcome=build-failed")
    github.double.go_wrong("POST", "/statuses/", LOST, after=True, times=2)
    alone = github.token_client.alone
    with a_commit_world(fork, tmp_path / "home", checks=github.statuses, alone=alone, url=url) as w:
        w.look()
        until_quiet()

    for commit, state in zip(fork.commits, ("success", "success", "failure"), strict=True):
        said = statuses(github, commit.sha)
        assert said[-1][0] == state
        assert {before for before, _ in said[:-1]} <= {"pending"}
        # What is over by the time that it is shown is left out, and nothing is said twice.
        assert len(said) == len(set(said)) <= 4
    assert {status["context"] for _, status in github.world.statuses} == {"forkwatch / commit"}


def test_a_lost_answer_makes_no_second_check_run(github: OpenedGitHub, tmp_path: Path) -> None:
    github.double.go_wrong("POST", "/check-runs$", LOST, after=True)
    fork = MemoryPulls("Import")
    with a_commit_world(fork, tmp_path / "home", checks=github.checks) as world:
        world.look()
        until_quiet()

    assert len(github.world.check_runs) == 1
    assert github.world.check_runs[0]["status"] == "completed"


def test_showing_it_again_writes_nothing(github: OpenedGitHub, tmp_path: Path) -> None:
    fork = MemoryPulls("Import", "Quiet")
    with a_commit_world(fork, tmp_path / "home", checks=github.checks) as world:
        world.look()
        until_quiet()
        writes = github.double.writes()
        for commit in fork.commits:
            world.steps.show_commit("demo", commit.sha)

    assert github.double.writes() == writes


def test_a_forge_that_refuses_holds_no_commit_up(github: OpenedGitHub, tmp_path: Path) -> None:
    github.world.granted["checks"] = "read"
    fork = MemoryPulls("Import", "Quiet")
    with a_commit_world(fork, tmp_path / "home", checks=github.checks) as world:
        world.look()
        until_quiet()
        outcomes = [world.commit(commit.sha).outcome for commit in fork.commits]

    assert outcomes == [CommitOutcome.BASELINE, CommitOutcome.NO_CHANGE]
    assert github.world.check_runs == []


class SlowDoor(nullcontext[None]):
    """A lock that is waited for until the commit behind it is over."""

    def __init__(self) -> None:
        super().__init__()
        self.world: CommitWorld | None = None
        self.sha = ""

    def __enter__(self) -> None:
        if self.world is not None:
            with self.world.database.writing() as session:
                commits.finish(
                    session,
                    "demo",
                    self.sha,
                    outcome=CommitOutcome.NO_CHANGE,
                    reason="all is well",
                    at=AT,
                )


def test_what_is_over_is_not_written_over_by_what_was(tmp_path: Path) -> None:
    checks, door = MemoryChecks(Mood()), SlowDoor()
    fork = MemoryPulls("Import", "Kept wait=yes")
    with a_commit_world(fork, tmp_path / "home", checks=checks, alone=door) as world:
        world.look()
        sha = fork.commits[-1].sha
        until(lambda: checks.of(sha) and checks.of(sha)[0].title.startswith("is being built"))
        door.world, door.sha = world, sha
        assert world.commit(sha).state is CommitState.MEASURING
        world.steps.show_commit("demo", sha)
        (check,) = checks.of(sha)
        world.release()
        until_quiet()

    assert (check.conclusion, check.title) == (Conclusion.SUCCESS, "all is well")


def test_a_commit_that_waited_in_sight_says_that_it_was_skipped(tmp_path: Path) -> None:
    checks = MemoryChecks(Mood())
    fork = MemoryPulls("Import wait=yes")
    chosen: dict[str, Any] = {"waiting_commits_max": 1, "backfill_commits": 1}
    with a_commit_world(fork, tmp_path / "home", checks=checks, **chosen) as world:
        world.look()
        until(lambda: world.runners.at_work)
        seen = fork.push("Seen")
        world.look()
        until(lambda: checks.of(seen))
        unseen, newest = fork.push("Not seen"), fork.push("Newest")
        world.look()
        # Nothing of it waits for the runner that is at work.
        until(lambda: checks.of(seen)[0].conclusion is not None)
        assert world.runners.at_work
        world.release()
        until_quiet()

    (said,) = checks.of(seen)
    assert said.conclusion is Conclusion.NEUTRAL
    assert said.title.startswith("not measured: 3 commits waited, and 1 may")
    assert checks.of(unseen) == []
    # One run is no baseline to be sure by.
    assert checks.of(newest)[0].title.startswith("point-query and scan are inconclusive")


def test_commits_stay_bare_where_that_is_wanted(github: OpenedGitHub, tmp_path: Path) -> None:
    home, fork = tmp_path / "home", MemoryPulls("Import")
    home.mkdir()
    settings = load_settings(
        home=home,
        host_class="small",
        poll_seconds=0.05,
        github_repository=REPOSITORY,
        github_token=USER_TOKEN,
        github_api_url=github.url,
        github_commit_checks=False,
    )
    migrate.upgrade(settings.data_url)
    service = compose(
        settings,
        clock=StillClock(),
        code_host=fork,
        dispatcher=PatientRunners(fork),
        alerts=MemoryAlerts(),
    )
    try:
        DBOS.launch()
        service.resume()
        service.watcher.look()
        until_quiet()
        with service.database.reading() as session:
            found = commits.find(session, "demo", fork.commits[0].sha)
    finally:
        DBOS.destroy(destroy_registry=True)
        service.database.close()

    assert found is not None
    assert found.outcome is CommitOutcome.BASELINE
    assert github.double.asked == []
