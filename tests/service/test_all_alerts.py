"""Several places as one: each is told, whatever becomes of the others."""

from __future__ import annotations

import pytest

from service.channels.all_alerts import AllAlerts
from service.core.errors import CodeHostError, ServiceError, TransientError
from service.core.model import Alert, AlertState
from tests.fakes.memory_fork import AT
from tests.fakes.run_documents import sha
from workloads.plan import Notify

ALERT = Alert(
    id="alert-1",
    fork="demo",
    sha=sha("b"),
    subject="",
    author="",
    baseline_sha=sha("a"),
    state=AlertState.CONFIRMED,
    workloads=(),
    run="run-1",
    opened_at=AT,
)


class Place:
    """A tracker in memory that says each thing once, and can be in trouble."""

    def __init__(self, name: str, *trouble: Exception) -> None:
        self.name = name
        self.trouble = list(trouble)
        self.said: set[str] = set()

    def raise_alert(self, alert: Alert, text: str, notify: Notify) -> str:
        return self._say(f"raised {alert.id}")

    def close_alert(
        self, alert: Alert, text: str, *, key: str, intended: bool = False
    ) -> str | None:
        return self._say(f"closed {key} {intended}") if self.said else None

    def reopen_alert(self, alert: Alert, text: str, *, key: str) -> str | None:
        return self._say(f"reopened {key}") if self.said else None

    def tell_news(self, alert: Alert, sentence: str, text: str, *, key: str) -> str | None:
        return self._say(f"news {key}") if self.said else None

    def _say(self, what: str) -> str:
        if self.trouble:
            raise self.trouble.pop(0)
        self.said.add(what)
        return f"{self.name}:{ALERT.id}"


def told(*places: Place) -> AllAlerts:
    return AllAlerts(trackers={place.name: place for place in places})


def test_every_place_is_told() -> None:
    github, slack, file = Place("github"), Place("slack"), Place("file")
    everywhere = AllAlerts(trackers={"github": github, "slack": slack}, sinks={"file": file})

    assert everywhere.raise_alert(ALERT, "", Notify()) == (
        "github:alert-1, slack:alert-1, file:alert-1"
    )
    assert everywhere.close_alert(ALERT, "", key="c", intended=True) == (
        "github:alert-1, slack:alert-1"
    )
    assert everywhere.reopen_alert(ALERT, "", key="d") == "github:alert-1, slack:alert-1"
    assert slack.said == {"raised alert-1", "closed c True", "reopened d"}
    assert file.said == {"raised alert-1"}


def test_news_go_where_the_alert_is_and_it_is_counted_who_was_told() -> None:
    github, slack = Place("github"), Place("slack", CodeHostError("no answer"))
    counted: list[tuple[str, bool]] = []
    everywhere = AllAlerts(
        trackers={"github": github},
        news={"github": github, "slack": slack},
        told=lambda channel, *, ok: counted.append((channel, ok)),
    )

    everywhere.raise_alert(ALERT, "", Notify())
    slack.said.add("raised elsewhere")
    with pytest.raises(TransientError, match="slack failed"):
        everywhere.tell_news(ALERT, "", "", key="n")
    assert everywhere.tell_news(ALERT, "", "", key="n") == "github:alert-1, slack:alert-1"

    told_first, *told_later = counted
    assert told_first == ("github", True)
    assert told_later == [("github", True), ("slack", False), ("github", True), ("slack", True)]


@pytest.mark.parametrize("trouble", [CodeHostError("no answer"), RuntimeError("a bug")])
def test_one_that_fails_does_not_stop_the_others_and_all_are_told_again(trouble: Exception) -> None:
    github, slack = Place("github", trouble), Place("slack")
    everywhere = told(github, slack)

    with pytest.raises(TransientError, match=f"github failed: {trouble}; slack:alert-1"):
        everywhere.raise_alert(ALERT, "", Notify())
    assert slack.said == {"raised alert-1"}

    assert everywhere.raise_alert(ALERT, "", Notify()) == "github:alert-1, slack:alert-1"


def test_a_refusal_does_not_send_the_others_into_a_second_round() -> None:
    everywhere = told(Place("github"), Place("slack", ServiceError("channel_not_found")))

    assert everywhere.raise_alert(ALERT, "", Notify()) == (
        "github:alert-1, slack failed: channel_not_found"
    )


def test_refused_everywhere_is_an_error() -> None:
    everywhere = told(Place("github", ServiceError("no")), Place("slack", ServiceError("never")))

    with pytest.raises(ServiceError, match="github failed: no; slack failed: never") as caught:
        everywhere.raise_alert(ALERT, "", Notify())
    assert not isinstance(caught.value, TransientError)


def test_what_is_open_nowhere_is_closed_nowhere() -> None:
    assert told(Place("github")).close_alert(ALERT, "", key="c") is None
    assert told().reopen_alert(ALERT, "", key="c") is None
