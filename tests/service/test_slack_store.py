"""What is remembered about Slack, on both databases."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy.exc import IntegrityError

from service.core.slack import FIRST, SlackPost
from service.store.slack_messages import StoredSlackMemory, accept_once
from tests.fakes.memory_fork import AT
from tests.fakes.slack_opened import ALERT, with_an_alert

if TYPE_CHECKING:
    from service.store.database import Database

POST = SlackPost(
    alert=ALERT,
    topic=FIRST,
    channel="C0ALERTS",
    ts="1800000001.000001",
    digest="d" * 64,
    resolution="As fast as before.",
)
MINUTE = timedelta(minutes=1)


def test_what_was_posted_is_remembered_by_alert_and_topic(database: Database) -> None:
    with_an_alert(database)
    memory = StoredSlackMemory(database)

    assert memory.find(ALERT, FIRST) is None
    memory.keep(POST)
    memory.keep(replace(POST, topic="closed:c", resolution=""))
    memory.keep(replace(POST, digest="e" * 64))

    assert memory.find(ALERT, FIRST) == replace(POST, digest="e" * 64)
    assert memory.find(ALERT, "closed:c") == replace(POST, topic="closed:c", resolution="")


def test_a_post_is_about_an_alert(database: Database) -> None:
    with pytest.raises(IntegrityError):
        StoredSlackMemory(database).keep(POST)


def test_alerts_are_due_from_their_time_on_and_until_they_are_posted(database: Database) -> None:
    with_an_alert(database)
    memory = StoredSlackMemory(database)
    memory.keep(replace(POST, ts="", due_at=AT))
    memory.keep(replace(POST, topic="closed:c", due_at=AT))

    assert memory.due(AT - MINUTE) == []
    assert memory.due(AT) == [ALERT]
    kept = memory.find(ALERT, FIRST)
    assert kept is not None
    assert kept.due_at == AT
    memory.keep(POST)
    assert memory.due(AT + MINUTE) == []


def test_a_request_is_accepted_once_and_forgotten_in_time(database: Database) -> None:
    def accepted(signature: str, minutes: int) -> bool:
        at = AT + minutes * MINUTE
        with database.writing() as session:
            return accept_once(session, signature, at=at, forget_before=at - 10 * MINUTE)

    assert [accepted("v0=a", 0), accepted("v0=b", 1), accepted("v0=a", 9)] == [True, True, False]
    # After that the age of the request is what refuses it.
    assert [accepted("v0=a", 11), accepted("v0=b", 11)] == [True, False]
