"""What became of each telling is heard, by the name of the place."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from service.channels.all_alerts import AllAlerts
from service.core.errors import ServiceError, TransientError
from tests.fakes.alert_story import an_alert_about
from tests.fakes.run_documents import sha
from workloads.plan import Notify

if TYPE_CHECKING:
    from service.core.model import Alert

ALERT = an_alert_about(sha("b"), sha("a"), "run-1", scan=9.0)


class Place:
    """A place that takes what it is told, or fails in its own way."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    def raise_alert(self, alert: Alert, text: str, notify: Notify) -> str:
        return self._answer()

    def close_alert(
        self, alert: Alert, text: str, *, key: str, intended: bool = False
    ) -> str | None:
        return self._answer()

    def reopen_alert(self, alert: Alert, text: str, *, key: str) -> str | None:
        return self._answer()

    def _answer(self) -> str:
        if self._error is not None:
            raise self._error
        return "here"


class Heard:
    """Counts what it hears."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, bool]] = Counter()

    def __call__(self, channel: str, *, ok: bool) -> None:
        self.counts[channel, ok] += 1


def test_every_telling_is_heard_with_its_outcome() -> None:
    heard = Heard()
    places = AllAlerts(
        trackers={"github": Place(), "slack": Place(TransientError("later"))},
        sinks={"files": Place(ServiceError("full"))},
        told=heard,
    )
    with pytest.raises(TransientError):
        places.raise_alert(ALERT, "# Slower\n", Notify())
    with pytest.raises(TransientError):
        places.close_alert(ALERT, "Over.", key="c")
    with pytest.raises(TransientError):
        places.reopen_alert(ALERT, "Back.", key="d")

    assert heard.counts == {("github", True): 3, ("slack", False): 3, ("files", False): 1}


def test_nobody_has_to_listen() -> None:
    assert AllAlerts(trackers={"github": Place()}).close_alert(ALERT, "Over.", key="c") == "here"
