"""A/A checks: what is asked, what it says of a host, and that no baseline learns of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from results.slice import SideName
from service.core.aa_checks import AaRefusedError, AaState
from service.core.alert_actions import SERVICE_ACTOR
from service.core.errors import CredentialRefusedError, NotFoundError
from service.core.model import EventKind
from service.flows import host_noise
from service.store import aa_checks, events, hosts, retention, runs, series, verdicts
from tests.fakes.memory_fork import MemoryFork
from tests.fakes.walked_steps import WalkedSteps
from workloads.plan import parse_plan

if TYPE_CHECKING:
    from service.core.aa_checks import AaCheck
    from service.store.database import Database

BRANCH = ("Import", "Quiet", "More")
WEEK = timedelta(days=7)


def a_walk(database: Database, *subjects: str, **chosen: Any) -> WalkedSteps:
    walked = WalkedSteps(database, MemoryFork(*(subjects or ("Import",))), **chosen)
    walked.walk()
    return walked


def asked(walked: WalkedSteps) -> AaCheck:
    return walked.checks.ask("small", actor="token:ada", via="api")


def checked(walked: WalkedSteps) -> AaCheck:
    """Return the check that is asked now, measured."""
    asked(walked)
    walked.walk_aside(walked.check)
    return walked.checks.newest("small")[0]


def said_of(walked: WalkedSteps, check: AaCheck) -> list[str]:
    with walked.database.reading() as session:
        log = events.of_commit(session, check.fork, check.sha)
    return [event.message for event in log if event.kind is EventKind.AA_CHECK]


def test_the_newest_measured_commit_is_paired_with_itself(database: Database) -> None:
    walked = a_walk(database, *BRANCH, "Broken outcome=build-failed")
    check = asked(walked)
    walked.walk_aside(walked.check)
    order = walked.runners.orders[-1]

    assert check.sha == walked.fork.commits[2].sha
    assert (check.state, check.asked_by, check.via) == (AaState.WAITING, "token:ada", "api")
    assert order.candidate == order.baseline == check.sha
    assert (order.job, order.run, order.host_class) == (check.id, check.run, "small")
    assert (order.submit_to, order.credential) == (None, None)
    assert order.variants == {SideName.BASELINE: "rel", SideName.CANDIDATE: "rel-aa"}
    assert order.configs == {SideName.BASELINE: "default", SideName.CANDIDATE: "default-aa"}
    assert order.alphas == {"scan": 0.005, "point-query": 0.005}
    twins = parse_plan(order.plan)
    assert order.starts == twins.suite("commit").confirm_starts
    assert set(twins.builds) == {"rel", "rel-aa"}


def test_a_quiet_host_is_said_to_see_the_gates(database: Database) -> None:
    walked = a_walk(database)
    check = checked(walked)

    assert check.state is AaState.DONE
    assert (check.host_name, check.alarms) == ("bench-1", ())
    assert [one.workload for one in check.results] == ["scan", "point-query"]
    for one in check.results:
        assert one.fits
        # By the plan of the fork, and not by that of the order, which lets every pair go on.
        assert one.gate == 0.05
        assert one.low is not None
        assert one.high is not None
        assert one.low < 0 < one.high
        assert one.sees_percent is not None
        assert one.sees_percent < 5
    assert check.said.startswith("bench-1 sees losses from ")
    assert check.said.endswith("fit for the gates of 2 of 2 workloads")
    assert said_of(walked, check) == []


def test_equals_that_are_called_different_are_an_event(database: Database) -> None:
    walked = a_walk(database)
    walked.runners.speed = 0.8
    check = checked(walked)

    assert check.state is AaState.DONE
    assert {one.workload for one in check.alarms} == {"scan", "point-query"}
    [said] = said_of(walked, check)
    assert "A/A check of the host class small" in said
    assert "bench-1 called two copies of one artifact different: scan -" in said
    # Doing it again says nothing twice.
    walked.check.note(check.id)
    assert said_of(walked, check) == [said]


def test_a_check_is_noise_of_its_host_and_nothing_else(database: Database) -> None:
    walked = a_walk(database, *BRANCH)
    with database.reading() as session:
        [host] = hosts.everything(session)
        before = len(hosts.noise(session, host))
        keys = series.of_fork(session, "demo")
        judged = verdicts.of_commit(session, "demo", walked.commit(3).sha)
    walked.clock.advance(timedelta(hours=1))
    check = checked(walked)
    walked.fork.push("Next")
    walked.walk()

    with database.reading() as session:
        [found] = host_noise.of_host(session, "bench-1", host_class=None, workload=None, limit=100)
        assert runs.find(session, check.run) is None
        assert [run.sha for run in runs.of_commit(session, "demo", check.sha)] == [check.sha]
        assert series.of_fork(session, "demo") == keys
        assert verdicts.of_commit(session, "demo", check.sha) == judged
        after = verdicts.of_commit(session, "demo", walked.fork.commits[-1].sha)
    own = [one for one in found.history if one.run == check.run]
    assert [one.noise.workload for one in own] == ["scan", "point-query"]
    assert all(one.noise.between_pairs.known for one in own)
    assert len(found.history) == before + 4
    usual = {one.workload: one for one in found.usual}
    assert usual["scan"].runs == 5
    assert usual["scan"].between_pairs_percent is not None
    # The three commits before it, and not the check.
    assert {len(verdict.baseline_inputs) for verdict in after} == {3}


def test_a_check_that_is_not_measured_says_why(database: Database) -> None:
    walked = a_walk(database, "Import")
    walked.fork.commits[0] = replace(walked.fork.commits[0], subject="Import outcome=unstable")
    check = checked(walked)

    assert check.state is AaState.FAILED
    assert check.results == ()
    assert check.host_name == "bench-1"
    assert "it was planned to" in check.said
    with database.reading() as session:
        [host] = hosts.everything(session)
        assert host.last_seen_at == walked.clock.now()


def test_a_check_whose_runners_are_lost_says_where_to_look(database: Database) -> None:
    walked = a_walk(database, "Import loseconfirm=9", runner_attempts_max=2)
    check = checked(walked)

    assert (check.state, check.attempts) == (AaState.FAILED, 2)
    assert "brought no run after 2 attempts" in check.said
    assert f"jobs/{check.id}/log" in check.said


def test_one_check_at_a_time_of_a_class_that_is_measured_here(database: Database) -> None:
    walked = a_walk(database)
    asked(walked)

    with pytest.raises(AaRefusedError, match="is under way since 2026-11-03 06:30 UTC"):
        asked(walked)
    with pytest.raises(NotFoundError, match="measures on the host class 'small', not on 'large'"):
        walked.checks.ask("large", actor="token:ada", via="api")


def test_a_fork_of_which_nothing_was_measured_cannot_be_checked_with(database: Database) -> None:
    walked = a_walk(database, "Broken outcome=build-failed")

    with pytest.raises(AaRefusedError, match="no commit of 'demo' was measured yet"):
        asked(walked)


def test_nothing_is_checked_by_itself_unless_that_is_set(database: Database) -> None:
    walked = a_walk(database)
    walked.clock.advance(100 * WEEK)

    assert walked.checks.ask_when_due() is None


def test_a_check_is_due_when_the_last_one_is_old_enough(database: Database) -> None:
    walked = a_walk(database, aa_check_days=7)
    first = walked.checks.ask_when_due()
    assert first is not None
    assert (first.asked_by, first.via) == (SERVICE_ACTOR, "flow")
    # Under way: the next is not asked, however long this one takes.
    walked.clock.advance(2 * WEEK)
    assert walked.checks.ask_when_due() is None
    walked.walk_aside(walked.check)
    second = walked.checks.ask_when_due()
    assert second is not None
    assert second.id != first.id
    walked.walk_aside(walked.check)
    walked.clock.advance(WEEK - timedelta(seconds=1))
    assert walked.checks.ask_when_due() is None
    walked.clock.advance(timedelta(seconds=1))
    assert walked.checks.ask_when_due() is not None


def test_a_check_that_is_due_waits_for_a_measured_commit(database: Database) -> None:
    walked = a_walk(database, "Broken outcome=build-failed", aa_check_days=7)

    assert walked.checks.ask_when_due() is None
    walked.fork.push("Mended")
    walked.walk()
    assert walked.checks.ask_when_due() is not None


def test_two_processes_that_find_it_due_ask_for_one_check(database: Database) -> None:
    walked = a_walk(database)
    check = asked(walked)
    with database.writing() as session:
        again = aa_checks.add_once(session, check, order="{}", gates="{}")
        assert aa_checks.order_of(session, check.id) != "{}"

    assert again == check
    assert walked.checks.newest("small") == [check]


def test_what_has_ended_stays_as_it_ended(database: Database) -> None:
    walked = a_walk(database)
    check = checked(walked)
    walked.check.give_up(check.id, "Bug")

    assert walked.check.order(check.id) is None
    assert walked.check.waiting() == []
    assert walked.checks.newest("small") == [check]


def test_a_check_that_the_service_cannot_follow_says_so(database: Database) -> None:
    walked = a_walk(database)
    check = asked(walked)
    walked.check.give_up(check.id, "Bug")

    [ended] = walked.checks.newest("small")
    assert (ended.state, ended.said) == (
        AaState.FAILED,
        "the service could not go on (Bug); its log says more",
    )


def test_a_document_of_another_job_is_refused(database: Database) -> None:
    walked = a_walk(database)
    check = asked(walked)
    walked.check.dispatch(check.id, 1)
    single = walked.runners.orders[0]
    walked.runners._documents[check.id] = walked.runners._documents[single.job]

    with pytest.raises(CredentialRefusedError, match="this job's is"):
        walked.check.look(check.id, 1)


def test_an_old_check_loses_its_seconds_as_any_document(database: Database) -> None:
    walked = a_walk(database)
    check = checked(walked)
    later = walked.clock.now() + timedelta(days=1)

    with database.reading() as session:
        found = retention.old_documents(session, "aa_checks", before=later, limit=10)
        earlier = retention.old_documents(session, "aa_checks", before=check.created_at, limit=10)
    assert (earlier, found) == ([], [check.id])
