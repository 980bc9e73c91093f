"""Several places that get the weekly digest as one: each gets it, whatever becomes of the others.

Each place keeps to itself that it takes a week once, so that all can be sent to again when one of
them failed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from service.core.errors import ServiceError, TransientError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.core.digests import StoredDigest
    from service.core.ports import DigestSink

_log = logging.getLogger("forkwatch.digests")


class AllDigests:
    """Every place that gets digests, by name."""

    def __init__(self, sinks: Mapping[str, DigestSink]) -> None:
        self._sinks = dict(sinks)

    def send_digest(self, digest: StoredDigest) -> str:
        """Send it to every place; return where it is.

        Raises:
            TransientError: At least one place does not take it now; sending to all again is safe.
            ServiceError: No place takes it.
        """
        sent: list[str] = []
        failed: dict[str, Exception] = {}
        for name, sink in self._sinks.items():
            try:
                sent.append(sink.send_digest(digest))
            except Exception as error:  # noqa: BLE001  a bug in one place must not silence the others
                known = isinstance(error, ServiceError)
                _log.warning("%s: %s", name, error, exc_info=None if known else error)
                failed[name] = error
        troubles = [f"{name} failed: {error}" for name, error in failed.items()]
        if any(_may_pass(error) for error in failed.values()):
            raise TransientError("; ".join([*troubles, *sent]))
        if failed and not sent:
            raise ServiceError("; ".join(troubles))
        return ", ".join([*sent, *troubles])


def _may_pass(error: Exception) -> bool:
    return isinstance(error, TransientError) or not isinstance(error, ServiceError)
