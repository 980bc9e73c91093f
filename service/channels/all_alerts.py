"""Several places that hear of alerts as one: each is told, whatever becomes of the others.

Each place keeps to itself that it tells an alert once, so that all of them can be told again when
one of them failed.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Protocol

from service.core.errors import ServiceError, TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from service.core.bisections import AlertNews
    from service.core.model import Alert
    from service.core.ports import AlertSink, AlertTracker
    from workloads.plan import Notify

_log = logging.getLogger("forkwatch.alerts")


class Told(Protocol):
    """Hears how often places can be told."""

    def __call__(self, channel: str, *, ok: bool) -> None:
        """Hear that a place was told something, or could not be."""


class AllAlerts:
    """Every place that hears of alerts; those that keep something open are trackers."""

    def __init__(
        self,
        *,
        trackers: Mapping[str, AlertTracker],
        sinks: Mapping[str, AlertSink] | None = None,
        news: Mapping[str, AlertNews] | None = None,
        told: Told | None = None,
    ) -> None:
        """Remember the places.

        Args:
            trackers: Places with something to close, by name.
            sinks: Places that are only told.
            news: Places where more can be said about an alert later.
            told: Hears whether each place could be told.
        """
        self._news = dict(news or {})
        self._told = told or _nobody
        self._trackers = dict(trackers)
        self._sinks: dict[str, AlertSink] = {**self._trackers, **(sinks or {})}

    def raise_alert(self, alert: Alert, text: str, notify: Notify) -> str:
        """Tell every place; return where it can be seen.

        Raises:
            TransientError: At least one place could not be told now; telling all again is safe.
            ServiceError: No place took it.
        """
        return self._each(
            {
                name: partial(sink.raise_alert, alert, text, notify)
                for name, sink in self._sinks.items()
            }
        )

    def close_alert(
        self, alert: Alert, text: str, *, key: str, intended: bool = False
    ) -> str | None:
        """Close it in every place that has it open; arguments are those of `AlertTracker`."""
        said = self._each(
            {
                name: partial(tracker.close_alert, alert, text, key=key, intended=intended)
                for name, tracker in self._trackers.items()
            }
        )
        return said or None

    def reopen_alert(self, alert: Alert, text: str, *, key: str) -> str | None:
        """Open it again in every place that has it; arguments are those of `AlertTracker`."""
        said = self._each(
            {
                name: partial(tracker.reopen_alert, alert, text, key=key)
                for name, tracker in self._trackers.items()
            }
        )
        return said or None

    def tell_news(self, alert: Alert, sentence: str, text: str, *, key: str) -> str | None:
        """Say it in every place that has it; arguments are those of `AlertNews`."""
        said = self._each(
            {
                name: partial(place.tell_news, alert, sentence, text, key=key)
                for name, place in self._news.items()
            }
        )
        return said or None

    def _each(self, deeds: Mapping[str, Callable[[], str | None]]) -> str:
        """Do each of these; return what they return, in one line.

        A place that refuses for good does not send the others into a second round. Anything else
        that goes wrong may pass, and is worth one.
        """
        told: list[str] = []
        failed: dict[str, Exception] = {}
        for name, deed in deeds.items():
            try:
                where = deed()
            except Exception as error:  # noqa: BLE001  a bug in one place must not silence the others
                known = isinstance(error, ServiceError)
                _log.warning("%s: %s", name, error, exc_info=None if known else error)
                failed[name] = error
            else:
                told += [where] if where else []
            self._told(name, ok=name not in failed)
        troubles = [f"{name} failed: {error}" for name, error in failed.items()]
        if any(_may_pass(error) for error in failed.values()):
            raise TransientError("; ".join([*troubles, *told]))
        if failed and len(failed) == len(deeds):
            raise ServiceError("; ".join(troubles))
        return ", ".join([*told, *troubles])


def _may_pass(error: Exception) -> bool:
    return isinstance(error, TransientError) or not isinstance(error, ServiceError)


def _nobody(channel: str, *, ok: bool) -> None:
    del channel, ok
