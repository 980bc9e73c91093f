"""Series that begin anew say so once, and a bridge relates new to old; nothing is rescaled."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from results.metric import THROUGHPUT
from service.core.alert_actions import SERVICE_ACTOR
from service.core.bridges import BridgeState
from service.core.errors import CredentialRefusedError
from service.core.model import CommitOutcome, EventKind
from service.flows.bridge_texts import lines_between
from service.flows.recovery import find_recovery
from service.store import alerts, baseline_marks, bridges, events, runs, series, verdicts
from service.web.history_notes import fork_notes, relation_lines
from tests.fakes.memory_fork import AT, MemoryFork
from tests.fakes.walked_steps import WalkedSteps

if TYPE_CHECKING:
    from service.core.bridges import Bridge
    from service.store.database import Database

BRANCH = ("Import", "Quiet", "More", "Still", "Calm")


def a_walk(database: Database, **chosen: object) -> WalkedSteps:
    walked = WalkedSteps(database, MemoryFork(*BRANCH), **chosen)
    walked.walk()
    return walked


def on_another_host_class(walked: WalkedSteps) -> WalkedSteps:
    """Return the service of the same store after it was moved to a faster class of hosts."""
    moved = WalkedSteps(walked.database, walked.fork, host_class="large")
    moved.runners.speed = 1.25
    moved.fork.push("On the new host")
    moved.walk()
    return moved


def only_bridge(walked: WalkedSteps) -> Bridge:
    with walked.database.reading() as session:
        [bridge] = bridges.newest(session, "demo")
    return bridge


def said_of(walked: WalkedSteps, sha: str) -> list[str]:
    with walked.database.reading() as session:
        found = events.of_commit(session, "demo", sha)
    return [event.message for event in found if event.kind is EventKind.SERIES_BEGAN]


def test_another_host_class_begins_anew_says_so_and_orders_a_bridge(database: Database) -> None:
    walked = on_another_host_class(a_walk(database))
    new, old = walked.commit(6), walked.commit(5)
    bridge = only_bridge(walked)

    assert new.outcome is CommitOutcome.BASELINE
    assert (bridge.sha, bridge.old_sha, bridge.paired) == (new.sha, old.sha, False)
    assert bridge.why == "host class small before, large now"
    assert [joint.workload for joint in bridge.joints] == ["scan", "point-query"]
    assert all(joint.before != joint.after for joint in bridge.joints)
    [said] = said_of(walked, new.sha)
    assert "scan, point-query begin anew" in said
    with database.reading() as session:
        [note] = fork_notes(session, "demo")
    assert "still to be measured" in note


def test_the_old_commit_under_the_new_conditions_relates_the_series(database: Database) -> None:
    walked = on_another_host_class(a_walk(database))
    walked.walk_aside(walked.bridge)
    bridge = only_bridge(walked)

    assert bridge.state is BridgeState.RELATED
    order = walked.runners.orders[-1]
    assert (order.candidate, order.baseline, order.host_class) == (bridge.old_sha, None, "large")
    assert (order.submit_to, order.credential) == (None, None)
    with database.reading() as session:
        found = bridges.relations_of(session, bridge.id)
        lines = relation_lines(session, "demo", "scan")
    assert [one.workload for one in found] == ["point-query", "scan"]
    for relation in found:
        assert relation.low < math.log(1.25) < relation.high
        assert math.exp(relation.effect) == pytest.approx(1.25, rel=0.03)
    assert len(lines) == 1
    assert "scan x 1.2" in lines[0]
    assert "Nothing is rescaled by it." in lines[0]
    assert "point-query" not in lines[0]


def test_no_baseline_learns_from_a_bridge_and_no_level_is_rescaled(database: Database) -> None:
    walked = on_another_host_class(a_walk(database))
    walked.walk_aside(walked.bridge)
    bridge = only_bridge(walked)
    walked.fork.push("After it")
    walked.walk()

    with database.reading() as session:
        found = verdicts.of_commit(session, "demo", walked.fork.commits[-1].sha)
        assert runs.find(session, bridge.run) is None
        assert [run.sha for run in runs.of_commit(session, "demo", bridge.old_sha)] == [
            bridge.old_sha
        ]
    # The run on the new host alone, neither the bridge nor what the old host measured.
    assert {len(verdict.baseline_inputs) for verdict in found} == {1}
    assert len(said_of(walked, bridge.sha)) == 2


def test_another_compiler_behind_the_same_names_begins_anew_by_a_mark(
    database: Database,
) -> None:
    walked = a_walk(database)
    walked.runners.compiler, walked.runners.speed = "g++ 13.1.0", 1.08
    walked.fork.push("With the new compiler")
    walked.walk()
    bridge, new = only_bridge(walked), walked.commit(6)

    assert bridge.why == "C++ compiler g++ 12.2.0 before, g++ 13.1.0 now"
    assert all(joint.before == joint.after for joint in bridge.joints)
    # Faster by 8 %, and neither a suspicion nor an improvement of the commit.
    assert new.outcome is CommitOutcome.BASELINE
    with database.reading() as session:
        for key in series.of_fork(session, "demo", metric=THROUGHPUT.name):
            mark = baseline_marks.find(session, key.id, new.sha)
            assert mark is not None
            assert (mark.actor, mark.note) == (SERVICE_ACTOR, bridge.why)
    walked.walk_aside(walked.bridge)
    walked.fork.push("The next")
    walked.walk()
    with database.reading() as session:
        [relation] = [
            one for one in bridges.relations_of(session, bridge.id) if one.workload == "scan"
        ]
        found = verdicts.of_commit(session, "demo", walked.fork.commits[-1].sha)
    assert math.exp(relation.effect) == pytest.approx(1.08, rel=0.03)
    assert {len(verdict.baseline_inputs) for verdict in found} == {1}
    assert len(said_of(walked, walked.fork.commits[-1].sha)) == 0


def test_hosts_of_a_class_with_different_compilers_do_not_begin_anew_in_turn(
    database: Database,
) -> None:
    """Each is compared with its own past; else no commit would ever be judged."""
    walked = a_walk(database)
    for number in range(4):
        walked.runners.host = f"bench-{number % 2 + 1}"
        walked.runners.compiler = f"g++ {12 + number % 2}.2.0"
        walked.fork.push(f"Change {number}")
        walked.walk()

    with database.reading() as session:
        assert bridges.newest(session, "demo") == []


def test_other_options_behind_a_build_begin_anew(database: Database) -> None:
    walked = a_walk(database)
    walked.fork.plan = walked.fork.plan.replace(
        "[builds.rel]", '[builds.rel]\ncmake_options = { WITH_SSL = "system" }'
    )
    walked.fork.push("With other options")
    walked.walk()

    assert only_bridge(walked).why == "other options behind build rel"


def test_builds_that_can_both_be_had_are_measured_side_by_side(database: Database) -> None:
    walked = a_walk(database)
    plan = walked.fork.plan.replace("[builds.rel]", "[builds.rel]\n\n[builds.lto]")
    walked.fork.plan = plan.replace("[suites.commit]", '[suites.commit]\nbuild = "lto"')
    walked.runners.speed = 1.1
    walked.fork.push("With link time optimisation")
    walked.walk()
    bridge = only_bridge(walked)
    walked.walk_aside(walked.bridge)
    order = walked.runners.orders[-1]

    assert bridge.paired
    assert bridge.why == "build rel before, lto now"
    assert order.candidate == order.baseline == bridge.old_sha
    assert {side.value: name for side, name in order.variants.items()} == {
        "baseline": "rel",
        "candidate": "lto",
    }
    with database.reading() as session:
        found = bridges.relations_of(session, bridge.id)
    assert [math.exp(one.effect) for one in found] == pytest.approx([1.1, 1.1], rel=0.02)
    assert all(one.paired for one in found)


def test_a_bridge_that_cannot_be_measured_says_why(database: Database) -> None:
    walked = a_walk(database)
    walked.fork.commits[4] = replace(walked.fork.commits[4], subject="Calm outcome=build-failed")
    moved = on_another_host_class(walked)
    moved.walk_aside(moved.bridge)
    bridge = only_bridge(moved)

    assert bridge.state is BridgeState.FAILED
    assert "does not build" in bridge.said
    with database.reading() as session:
        [line] = relation_lines(session, "demo", "scan")
        assert bridges.relations_of(session, bridge.id) == []
    assert "Old and new are not related" in line


def test_doing_a_step_again_changes_nothing(database: Database) -> None:
    walked = on_another_host_class(a_walk(database))
    walked.walk_aside(walked.bridge)
    bridge = only_bridge(walked)
    walked.bridge.note(bridge.id)

    assert walked.bridge.order(bridge.id) is None
    assert walked.bridge.waiting() == []
    assert only_bridge(walked) == bridge
    assert len(said_of(walked, bridge.sha)) == 2


def test_a_document_of_another_job_is_refused(database: Database) -> None:
    walked = on_another_host_class(a_walk(database))
    [name] = walked.bridge.waiting()
    walked.bridge.dispatch(name, 1)
    [single] = [order for order in walked.runners.orders if order.candidate == walked.commit(6).sha]
    walked.runners._documents[name] = walked.runners._documents[single.job]

    with pytest.raises(CredentialRefusedError, match="this job's is"):
        walked.bridge.look(name, 1)


def test_the_digest_of_a_time_names_what_began_in_it(database: Database) -> None:
    on_another_host_class(a_walk(database))
    hour = timedelta(hours=1)
    with database.reading() as session:
        during = lines_between(session, "demo", AT, AT + hour)
        before = lines_between(session, "demo", AT - hour, AT)

    assert len(during) == 1
    assert "begins anew" in during[0]
    assert before == []


def test_a_first_run_and_a_new_workload_begin_nothing_anew(database: Database) -> None:
    walked = a_walk(database)

    with database.reading() as session:
        assert bridges.newest(session, "demo") == []
    assert said_of(walked, walked.fork.commits[0].sha) == []


def test_a_faster_compiler_does_not_close_the_alert_of_a_loss(database: Database) -> None:
    """The level from before the loss was measured under other conditions: it says nothing now."""
    walked = a_walk(database)
    walked.fork.push("Slower speed=0.9")
    walked.walk()
    walked.runners.compiler, walked.runners.speed = "g++ 13.1.0", 1.11
    for number in range(2):
        walked.fork.push(f"After it {number} speed=0.9")
        walked.walk()

    chain = [commit.sha for commit in reversed(walked.fork.commits)]
    with database.reading() as session:
        [alert] = alerts.newest(session)
        assert find_recovery(session, alert, chain) is None
