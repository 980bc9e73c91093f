"""Who asks for a bisect, and who hears of it: alerts, comments, buttons, and nobody at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bisects.document import BisectEnd
from results.slice import SideName
from service.core.alert_actions import AlertAction, AlertOrder
from service.core.alert_records import AuditSubject
from service.core.bisections import UNDER_WAY, BisectRefusedError, BisectState
from service.core.errors import UnknownAlertError
from service.core.model import AlertState
from service.store import alerts, audit, bisects
from tests.fakes.bisect_world import BOT, BisectWorld, a_bisect_world
from tests.fakes.run_documents import a_run
from tests.fakes.stored_fork import SLOWER, a_stored_run, an_open_alert

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.core.bisections import Bisect
    from service.core.model import Alert
    from tests.fakes.postgres_server import PostgresServer

RANGE = ("Import", "Quiet", "Tidy up", "Check the format speed=0.9", "After it speed=0.9")
#: Log ratios about -0.1 with a spread of half a percent.
PAIR = [[1.8, 1.81], [1.79, 1.8], [1.805, 1.8], [1.8, 1.795], [1.81, 1.8], [1.795, 1.8]]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BisectWorld]:
    url = None
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.new_database()
    home = tmp_path_factory.mktemp("home")
    with a_bisect_world(home, url, bisect_automatically=True) as opened:
        yield opened


def an_alert(world: BisectWorld, *subjects: str) -> str:
    """Store a branch whose last commit has an alert against its first; return the alert's id."""
    good, bad = world.branch(*subjects, seen=True)
    story = (
        a_run()
        .called(f"run-{bad[:8]}")
        .on(bad, subject=subjects[-1])
        .against(good)
        .with_samples("scan", PAIR)
        .with_samples("scan", [[2.0, 2.0]] * len(PAIR), side=SideName.BASELINE)
    )
    name = f"alert-{bad[:8]}"
    with world.database.writing() as session:
        document = a_stored_run(session, story, {"scan": SLOWER})
        an_open_alert(session, document, {"scan": SLOWER}, alert_id=name)
    return name


def alert_of(world: BisectWorld, name: str) -> Alert:
    with world.database.reading() as session:
        found = alerts.find(session, name)
    assert found is not None
    return found


def bisects_of(world: BisectWorld, name: str) -> list[str]:
    with world.database.reading() as session:
        return [bisect.id for bisect in bisects.newest(session, alert=name)]


def test_an_alert_is_bisected_to_its_culprit(world: BisectWorld) -> None:
    name = an_alert(world, *RANGE)
    bisect, new = world.asks.ask_about(name, actor="token:ada", via="api")
    assert new
    ended = world.ended(bisect.id)
    found = world.document(bisect.id)

    assert (found.end, found.culprits) == (BisectEnd.CULPRIT, (3,))
    assert alert_of(world, name).state is AlertState.CULPRIT_FOUND
    with world.database.reading() as session:
        log = audit.history(session, AuditSubject.ALERT, name)
    assert [(entry.what, entry.after) for entry in log] == [
        ("bisect", "bisecting"),
        ("name-culprit", "culprit-found"),
    ]
    assert log[0].note == "asked for by token:ada"
    assert log[1].note == ended.said
    _, sentence, text = world.news.said[f"{bisect.id}:ended"]
    assert "Check the format" in sentence
    assert f"/bisects/{bisect.id}" in sentence
    assert "To do it again in a checkout" in text


def test_the_pair_that_confirmed_the_alert_is_the_first_measurement(world: BisectWorld) -> None:
    name = an_alert(world, *RANGE)
    bisect, _ = world.asks.ask_about(name, actor="token:ada", via="api")
    world.ended(bisect.id)
    first = world.document(bisect.id).observations[0]

    assert first.commit == len(RANGE) - 1
    assert first.job == f"job-of-run-{name.removeprefix('alert-')}"
    assert len(first.log_ratios) == len(PAIR)
    # It was paid for by the alert.
    assert world.document(bisect.id).minutes_spent == 4 * len(world.orders(bisect.id))


def test_the_thread_hears_of_the_beginning_and_of_a_cancelled_end(world: BisectWorld) -> None:
    name = an_alert(world, "Import", "Takes long wait=yes", "Slower speed=0.9")
    bisect, _ = world.asks.ask_about(name, actor="token:ada", via="api")
    world.until(lambda: f"{bisect.id}:begun" in world.news.said)
    world.until(lambda: world.runners.at_work)
    assert alert_of(world, name).state is AlertState.BISECTING
    world.asks.cancel(bisect.id, "token:eve")
    world.ended(bisect.id)

    assert "The 2 commits after" in world.news.said[f"{bisect.id}:begun"][1]
    assert world.news.said[f"{bisect.id}:ended"][1].startswith("ended by token:eve")
    assert alert_of(world, name).state is AlertState.CONFIRMED


def test_an_alert_that_is_over_or_unknown_is_not_searched(world: BisectWorld) -> None:
    name = an_alert(world, *RANGE)
    order = AlertOrder(alert=name, action=AlertAction.FIXED, actor="github:ada", via="github")
    world.actions.act(order)

    with pytest.raises(BisectRefusedError, match="the alert is fixed"):
        world.asks.ask_about(name, actor="token:ada", via="api")
    with pytest.raises(UnknownAlertError, match="no alert"):
        world.asks.ask_about("alert-none", actor="token:ada", via="api")
    assert bisects_of(world, name) == []


def test_a_range_of_one_commit_needs_no_search(world: BisectWorld) -> None:
    name = an_alert(world, "Import", "Slower speed=0.9")

    with pytest.raises(BisectRefusedError, match="one commit"):
        world.asks.ask_about(name, actor="token:ada", via="api")


def test_an_alert_settled_meanwhile_stays_settled(world: BisectWorld) -> None:
    name = an_alert(world, "Import", "Takes long wait=yes", "Slower speed=0.9")
    bisect, _ = world.asks.ask_about(name, actor="token:ada", via="api")
    world.until(lambda: world.runners.at_work)
    order = AlertOrder(alert=name, action=AlertAction.ACCEPT, actor="github:ada", via="github")
    world.actions.act(order)
    ended = let_all_end(world, bisect.id)

    assert ended.state is BisectState.OVER
    assert alert_of(world, name).state is AlertState.ACCEPTED


def test_it_begins_by_itself_where_the_settings_say_so_and_once(world: BisectWorld) -> None:
    name = an_alert(world, *RANGE)
    world.alerted.alerted(name, "1" * 40)
    world.alerted.alerted(name, "1" * 40)
    world.until(lambda: bisects_of(world, name))
    [bisect] = bisects_of(world, name)
    ended = world.ended(bisect)

    assert (ended.asked_by, ended.via, ended.state) == ("forkwatch", "flow", BisectState.OVER)


def test_what_a_person_has_ended_does_not_begin_by_itself(world: BisectWorld) -> None:
    name = an_alert(world, "Import", "Takes long wait=yes", "Slower speed=0.9")
    world.alerted.alerted(name, "1" * 40)
    world.until(lambda: bisects_of(world, name))
    [bisect] = bisects_of(world, name)
    world.until(lambda: world.runners.at_work)
    world.asks.cancel(bisect, "token:eve")
    world.ended(bisect)
    world.alerted.alerted(name, "1" * 40)
    world.alerted.alerted(name, "2" * 40)
    world.alerted.alerted(an_alert(world, "Import", "Slower speed=0.9"), "1" * 40)
    world.until_quiet()

    assert bisects_of(world, name) == [bisect]


def test_a_button_begins_it_in_the_name_of_who_pressed(world: BisectWorld) -> None:
    name = an_alert(world, *RANGE)
    world.asks.press(name, "slack:U0ADA")
    [bisect] = bisects_of(world, name)

    ended = world.ended(bisect)
    assert (ended.asked_by, ended.via) == ("slack:U0ADA", "slack")


def test_a_comment_is_answered_and_hears_of_the_end(world: BisectWorld) -> None:
    good, bad = world.branch(*RANGE)
    number = next(world.numbers)
    answer = world.say(f"/forkwatch bisect {good} {bad} scan", number=number)
    [bisect] = [one for one in newest(world) if one in answer]
    world.ended(bisect)
    said = world.talk.stuck[number, bisect]

    assert answer.startswith(f"The 4 commits after `{good[:8]}` up to `{bad[:8]}` are being")
    assert "Check the format speed=0.9" in said
    assert "Everything measured" in said
    again = world.say(f"/forkwatch bisect {good} {bad} scan", number=number)
    assert again.startswith("This was searched before: scan is ")


def test_a_comment_on_the_issue_of_an_alert_is_about_the_alert(world: BisectWorld) -> None:
    name = an_alert(world, *RANGE)
    alert = alert_of(world, name)
    text = f"/forkwatch bisect {alert.baseline_sha} {alert.sha}"
    number = next(world.numbers)
    world.say(text, number=number, alert=name, issue_login=BOT)
    [bisect] = bisects_of(world, name)
    ended = world.ended(bisect)

    # The issue hears of it as that of the alert, and not twice.
    assert ended.number is None
    assert (number, bisect) not in world.talk.stuck
    assert f"{bisect}:ended" in world.news.said
    assert ended.question.workload == "scan"


def test_a_strangers_issue_speaks_for_no_alert(world: BisectWorld) -> None:
    name = an_alert(world, *RANGE)
    alert = alert_of(world, name)
    text = f"/forkwatch bisect {alert.baseline_sha} {alert.sha} scan"
    world.say(text, alert=name, issue_login="mallory")
    world.until_quiet()

    assert bisects_of(world, name) == []
    assert alert_of(world, name).state is AlertState.CONFIRMED


def test_a_refusal_says_what_to_do_without_the_words_of_the_order(world: BisectWorld) -> None:
    good, bad = world.branch("Import", "Quiet")
    answer = world.say(f"/forkwatch bisect nowhere {bad} scan")
    listed = world.say(f"/forkwatch bisect {good} {bad}")

    assert answer.startswith("Not begun: the good end names no commit here")
    assert "nowhere" not in answer
    assert "name the workload; the suite has: scan, point-query" in listed


def newest(world: BisectWorld) -> list[str]:
    with world.database.reading() as session:
        return [bisect.id for bisect in bisects.newest(session)]


def let_all_end(world: BisectWorld, bisect_id: str) -> Bisect:
    """Let every runner that waits come to its end, until a bisect is over."""

    def over() -> bool:
        for job in list(world.runners.at_work):
            world.runners.release(job)
        return world.bisect(bisect_id).state not in UNDER_WAY

    world.until(over)
    return world.ended(bisect_id)
