"""InnoDB at rest: dirty pages are written and old row versions purged.

A running server comes in, what is left of its background work goes out. What versions differ in is
asked of the server: a variable that it does not have is left alone.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from runner.servers import session
from runner.servers.settle import wait

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runner.servers.engine import RunningServer

#: Pages that servers dirty while idle; a page is 16 KiB.
DIRTY_PAGES_MAX: Final = 32
#: MySQL purges in batches of 128 undo logs and leaves the last ones for later.
HISTORY_MAX: Final = 128
_NUMBER: Final = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,10})?")

#: What hurries the purge: an idle server leaves up to 128 batches in its history (MySQL 8.0.31 and
#: MariaDB 10.11.5 kept 300 to 12,000 of them for as long as they were watched), and not with this.
_PURGE: Final = {"innodb_purge_rseg_truncate_frequency": "1", "innodb_purge_batch_size": "5000"}
#: Never lowered.
_CAPACITIES: Final = {"innodb_io_capacity_max": "20000", "innodb_io_capacity": "20000"}
#: What hurries the writing of pages, in an order that no check of the server objects to: MySQL
#: lowers the low-water mark with the maximum, and does not put it back with it. At the default of
#: MariaDB, 200 pages a second, the pages of 200,000 rows took 39 s.
_HURRIED: Final[Mapping[str, Mapping[str, str]]] = {
    "mariadb": {**_PURGE, "innodb_max_dirty_pages_pct": "0", **_CAPACITIES},
    "mysql": {
        **_PURGE,
        "innodb_max_dirty_pages_pct_lwm": "0",
        "innodb_max_dirty_pages_pct": "0",
        "innodb_idle_flush_pct": "100",
        **_CAPACITIES,
    },
}


def settle(server: RunningServer, *, until: float) -> str:
    """Bring InnoDB to rest until the monotonic clock shows `until`; return what was left.

    Raises:
        ServerError: The server refused a statement.
    """
    found = left(server)
    if found:
        with _hurried(server):
            found = wait(lambda: left(server), until=until)
    return found


@contextmanager
def _hurried(server: RunningServer) -> Iterator[None]:
    """Let pages be written at once for a while, and put every setting back."""
    wanted = _HURRIED[server.spec.engine]
    before = _variables(server, *wanted)
    changed = [
        name
        for name, value in wanted.items()
        if name in before and not (name in _CAPACITIES and float(before[name]) >= float(value))
    ]
    _set(server, {name: wanted[name] for name in changed})
    try:
        yield
    finally:
        # Backwards: the capacity before its maximum, the maximum before its low-water mark.
        _set(server, {name: before[name] for name in reversed(changed)})


def _variables(server: RunningServer, *names: str) -> dict[str, str]:
    """Return those of these variables that the server has, and that are plain numbers."""
    listed = ", ".join(f"'{name}'" for name in names)
    found = session.rows(server, f"SHOW GLOBAL VARIABLES WHERE variable_name IN ({listed})")
    return {
        name.lower(): value[0] for name, *value in found if value and _NUMBER.fullmatch(value[0])
    }


def _set(server: RunningServer, values: Mapping[str, str]) -> None:
    if values:
        text = ", ".join(f"GLOBAL {name} = {value}" for name, value in values.items())
        session.rows(server, f"SET {text}")


def left(server: RunningServer) -> str:
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
