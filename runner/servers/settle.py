"""Settling: a server's state before a workload is measured does not depend on what ran before.

For InnoDB: dirty pages are written and old row versions purged. A server that does not settle in
time is measured all the same, and its samples say so.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runner.servers import session

if TYPE_CHECKING:
    from runner.servers.mysql_family import RunningServer

#: The field waits 60 s and more (docs/domain: POSTWRITE); small datasets settle in well under one.
SETTLE_TIMEOUT_S: Final = 120.0
_POLL_S: Final = 0.1
#: Pages that servers dirty while idle; a page is 16 KiB.
DIRTY_PAGES_MAX: Final = 32
#: MySQL purges in batches of 128 undo logs and leaves the last ones for later.
HISTORY_MAX: Final = 128


@dataclass(frozen=True, kw_only=True)
class Settled:
    """How a server came to rest."""

    seconds: float
    #: Empty when it is at rest, else what was left when time ran out.
    left: str


def settle(server: RunningServer, *, timeout_s: float = SETTLE_TIMEOUT_S) -> Settled:
    """Wait until the server has no background work left, hurrying it on.

    Raises:
        ServerError: The server refused a statement.
    """
    began = time.monotonic()
    left = _left(server)
    if left:
        before = session.rows(server, "SELECT @@GLOBAL.innodb_max_dirty_pages_pct")[0][0]
        session.rows(server, "SET GLOBAL innodb_max_dirty_pages_pct = 0")
        while left and time.monotonic() - began < timeout_s:
            time.sleep(_POLL_S)
            left = _left(server)
        session.rows(server, f"SET GLOBAL innodb_max_dirty_pages_pct = {float(before)}")
    return Settled(seconds=round(time.monotonic() - began, 3), left=left)


def _left(server: RunningServer) -> str:
    """Return the background work that is left, in words, or an empty text."""
    found = session.status(server, "Innodb_buffer_pool_pages_dirty", "Innodb_history_list_length")
    dirty = found.get("innodb_buffer_pool_pages_dirty", 0)
    history = found.get("innodb_history_list_length")
    if history is None:
        history = _history_of_mysql(server)
    words = []
    if dirty > DIRTY_PAGES_MAX:
        words.append(f"{dirty} dirty pages")
    if history > HISTORY_MAX:
        words.append(f"{history} row versions to purge")
    return ", ".join(words)


def _history_of_mysql(server: RunningServer) -> int:
    """Return the length of the history list where it is a metric and not a status counter."""
    found = session.rows(
        server,
        "SELECT count FROM information_schema.innodb_metrics WHERE name = 'trx_rseg_history_len'",
    )
    return int(found[0][0]) if found else 0
