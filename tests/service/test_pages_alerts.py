"""The page of an alert: its timeline, and its form with good, bad and hostile orders."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from service.core.alert_records import AuditSubject
from service.core.model import AlertState
from service.core.tokens import Scope
from service.store import alerts, audit
from service.store.database import Database
from service.store.migrate import upgrade
from service.web.alert_api import ORDER_BYTES_MAX
from tests.fakes.alert_story import ALERT, a_longer_week
from tests.fakes.memory_fork import StillClock
from tests.fakes.page_clerk import PageClerk
from tests.fakes.run_documents import AT
from tests.fakes.visitor import parsed, visible

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from service.core.alert_records import AuditEntry
    from service.core.model import Alert

PAGE = f"/alerts/{ALERT}"
EVIL = "</textarea><script>x()</script><img src=x onerror=x()> {{ 7*7 }}"


def a_clerk(database: Database) -> PageClerk:
    with database.writing() as session:
        a_longer_week(session)
    return PageClerk(database, clock=StillClock(AT + timedelta(hours=1)))


@pytest.fixture
def clerk(tmp_path: Path) -> Iterator[PageClerk]:
    url = f"sqlite:///{tmp_path / 'service.sqlite'}"
    upgrade(url)
    database = Database(url)
    yield a_clerk(database)
    database.close()


def stored(clerk: PageClerk) -> Alert:
    with clerk.database.reading() as session:
        alert = alerts.find(session, ALERT)
    assert alert is not None
    return alert


def log(clerk: PageClerk) -> list[AuditEntry]:
    with clerk.database.reading() as session:
        return audit.history(session, AuditSubject.ALERT, ALERT)


def test_an_order_is_done_in_the_name_of_its_token_and_is_on_the_timeline(
    database: Database,
) -> None:
    clerk = a_clerk(database)
    token = clerk.secret("ada", Scope.ACT)

    answer = clerk.order(PAGE, action="acknowledge", note="I look at it", token=token)

    assert (answer.status_code, answer.headers["location"]) == (303, f"{PAGE}#timeline")
    assert (stored(clerk).state, stored(clerk).owner) == (AlertState.ACKNOWLEDGED, "token:ada")
    (entry,) = log(clerk)
    assert (entry.via, entry.actor, entry.note) == ("page", "token:ada", "I look at it")
    text = clerk.read(PAGE)
    shown = text[text.index("Timeline") :]
    raised = shown.index("a paired job showed the loss at 55555555")
    done = shown.index("token:ada (page) acknowledge, confirmed to acknowledged I look at it")
    assert raised < done
    assert "token:ada looks after it: fix or revert it" in text


def test_an_assignment_has_an_owner_and_a_day_and_a_mute_an_end(clerk: PageClerk) -> None:
    token = clerk.secret("ada", Scope.ACT)

    clerk.order(PAGE, action="assign", owner="Grace", due_on="2026-11-20", token=token)
    clerk.order(PAGE, action="mute", days="3", token=token)

    alert = stored(clerk)
    assert (alert.owner, str(alert.due_on)) == ("Grace", "2026-11-20")
    assert alert.muted_until == clerk.clock.now() + timedelta(days=3)
    assert "owner Grace by 2026-11-20" in clerk.read(PAGE)
    assert "Quiet until 2026-11-06" in clerk.read("/")


def test_a_form_that_is_sent_twice_is_one_order(clerk: PageClerk) -> None:
    fields = {"key": "abc123", "action": "note", "note": "once", "token": ""}
    fields["token"] = clerk.secret("ada", Scope.ACT)

    answers = [clerk.ask("POST", PAGE, data=fields) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [303, 303]
    assert [entry.note for entry in log(clerk)] == ["once"]


def test_a_key_of_another_order_gives_way_to_a_new_one(clerk: PageClerk) -> None:
    fields = {"key": "abc123", "token": clerk.secret("ada", Scope.ACT)}
    clerk.ask("POST", PAGE, data=fields | {"action": "note", "note": "once"})

    answer = clerk.ask("POST", PAGE, data=fields | {"action": "accept"})

    assert answer.status_code == 409
    assert "was used for &#39;note&#39; before" in answer.text
    assert 'value="abc123"' not in answer.text


@pytest.mark.parametrize(
    ("scopes", "status", "said"),
    [
        ((), 403, "An order needs a token with the scope 'act'."),
        ((Scope.READ, Scope.SUBMIT), 403, "this needs the scope 'act'"),
    ],
)
def test_without_the_right_token_nothing_is_done_and_the_words_stay(
    clerk: PageClerk, scopes: tuple[Scope, ...], status: int, said: str
) -> None:
    token = clerk.secret("bob", *scopes) if scopes else ""

    answer = clerk.order(PAGE, action="accept", note="meant so", token=token)

    assert answer.status_code == status
    assert "www-authenticate" not in answer.headers
    text = visible(answer.text)
    assert f"Not done: {said}" in text
    assert "meant so" in text
    assert log(clerk) == []
    assert stored(clerk).state is AlertState.CONFIRMED


@pytest.mark.parametrize("token", ["fw_0_0", "x" * 1_000, "é", "fw_"])
def test_a_token_that_is_none_is_refused_and_not_shown(clerk: PageClerk, token: str) -> None:
    answer = clerk.order(PAGE, action="accept", token=token)

    assert answer.status_code == 403
    assert "not known, or no longer good" in answer.text
    assert 'type="password" autocomplete="current-password" required>' in answer.text
    assert log(clerk) == []


def test_a_login_of_the_browser_is_no_token_of_the_form(clerk: PageClerk) -> None:
    # A browser sends its login with whatever any site has it send.
    token = clerk.secret("ada", Scope.ACT)

    answer = clerk.ask("POST", PAGE, data={"action": "accept"}, auth=("ada", token))

    assert answer.status_code == 403
    assert log(clerk) == []


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"action": "explode"}, 422, "action: Input should be"),
        ({}, 422, "action: Input should be"),
        ({"action": "note", "note": " "}, 409, "a note without words says nothing"),
        ({"action": "note", "note": "x" * 2_001}, 422, "note: String should have at most 2000"),
        ({"action": "assign", "due_on": "soon"}, 422, "due_on: Input should be a valid date"),
        ({"action": "assign", "owner": "x" * 201}, 422, "owner: String should have at most 200"),
        ({"action": "mute", "days": "91"}, 422, "days: a number from 1 to 90"),
        ({"action": "mute", "days": "-1"}, 422, "days: a number from 1 to 90"),
        ({"action": "mute", "days": "9" * 9_000}, 422, "days: a number from 1 to 90"),
        ({"action": "mute", "days": "0"}, 409, "can be muted for at most 90 days from now"),
        ({"action": "reopen"}, 409, "cannot take"),
    ],
)
def test_what_is_no_order_is_explained(
    clerk: PageClerk, fields: dict[str, str], status: int, said: str
) -> None:
    answer = clerk.order(PAGE, token=clerk.secret("ada", Scope.ACT), **fields)

    assert answer.status_code == status, answer.text
    assert said in visible(answer.text)
    assert log(clerk) == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"\xff\xfe", 422),
        (b"&".join(b"a%d=b" % number for number in range(50)), 422),
        (b"a=" + b"b" * ORDER_BYTES_MAX, 413),
    ],
)
def test_a_body_that_is_no_form_of_ours_is_refused(
    clerk: PageClerk, body: bytes, status: int
) -> None:
    answer = clerk.ask("POST", PAGE, content=body)

    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


def test_an_order_about_nothing_is_a_page_that_leads_back(clerk: PageClerk) -> None:
    token = clerk.secret("ada", Scope.ACT)

    answer = clerk.ask("POST", "/alerts/none", data={"action": "accept", "token": token})

    assert answer.status_code == 404
    assert 'href="/"' in answer.text


def test_hostile_words_of_an_order_stay_words(clerk: PageClerk) -> None:
    token = clerk.secret("ada", Scope.ACT)

    refused = clerk.order(PAGE, action="nothing", note=EVIL, owner=f'"{EVIL}', token=token).text
    clerk.order(PAGE, action="assign", note=EVIL, owner=EVIL, token=token)

    for html in (refused, clerk.ask("GET", PAGE).text, clerk.ask("GET", "/").text):
        reader = parsed(html)
        assert "img" not in {tag for tag, _ in reader.tags}
        assert "<script>x()" not in html
        assert "49" not in visible(html).split()
        assert not [name for _, fields in reader.tags for name in fields if name.startswith("on")]
    assert "<script>x()</script>" in visible(clerk.ask("GET", PAGE).text)


def test_a_form_sends_to_us_alone_and_nobody_may_frame_it(clerk: PageClerk) -> None:
    policy = clerk.ask("GET", PAGE).headers["content-security-policy"]

    assert "form-action 'self'" in policy
    assert "frame-ancestors 'none'" in policy


def test_what_is_possible_follows_the_state(clerk: PageClerk) -> None:
    token = clerk.secret("ada", Scope.ACT)
    clerk.order(PAGE, action="accept", token=token)

    text = clerk.read(PAGE)

    assert "reopen: it is not settled after all" in text
    assert "acknowledge: I have seen it" not in text
    assert "next Nothing; later commits are compared with the new level." in text
    assert clerk.settled == [log(clerk)[-1].id]


def test_an_alert_leads_to_its_comparison_and_its_bisects(clerk: PageClerk) -> None:
    html = clerk.ask("GET", PAGE).text

    compared = f"/compare?fork=demo&amp;baseline={'4' * 40}&amp;candidate={'5' * 40}"
    assert f'href="{compared}"' in html
    assert f'href="/bisects?alert={ALERT}"' in html
