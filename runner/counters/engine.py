"""What the engine did: status counters of the server before and after a slice, as differences.

The server under test is hostile and answers what it likes, so names are those we know, numbers are
plain, and there are only so many. Looking costs the server something, which shows in its own
counters; that cost is measured once per server and taken off again.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from results.slice import ENGINE_COUNTERS_MAX
from runner.errors import ServerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from runner.servers.engine import RunningServer

#: Counters that explain a plan, a page access or a write; gauges such as pages that are dirty now
#: are no counters.
_WANTED: Final = re.compile(
    r"handler_[a-z0-9_]{1,60}"
    r"|innodb_rows_(?:deleted|inserted|read|updated)"
    r"|innodb_buffer_pool_(?:reads|read_requests|write_requests|pages_flushed|wait_free)"
    r"|innodb_data_(?:fsyncs|read|reads|writes|written)"
    r"|innodb_log_(?:waits|write_requests|writes)"
    r"|innodb_os_log_(?:fsyncs|written)"
    r"|innodb_pages_(?:created|read|written)"
    r"|innodb_row_lock_(?:time|waits)"
    r"|rocksdb_[a-z0-9_]{1,60}"
    # PostgreSQL: rows and blocks of the database, of tables and indexes; pages and log written.
    r"|pg_database_(?:blks_(?:hit|read)|tup_[a-z]{1,20}|xact_[a-z]{1,20}|temp_(?:bytes|files))"
    r"|pg_(?:tables|indexes)_(?:idx|seq)_[a-z_]{1,20}|pg_tables_n_tup_[a-z_]{1,20}"
    r"|pg_(?:bgwriter|checkpointer)_(?:buffers|num|maxwritten)_[a-z_]{1,40}"
    r"|pg_io_(?:evictions|extends|fsyncs|hits|reads|reuses|writebacks|writes)"
    r"|pg_wal_wal_(?:buffers_full|bytes|fpi|records|sync|write)"
)
#: What MyRocks has that goes up and down: not counters.
_GAUGES: Final = re.compile(r"rocksdb_(?:memtable_(?:total|unflushed)|.*_(?:current|usage)$)")
#: An unsigned number of 64 bits at most.
_NUMBER: Final = re.compile(r"[0-9]{1,20}")
_LARGEST: Final = 2**64
#: Looks in a row of which the cost of one is taken: the least difference, for the server's own
#: background may do something in between.
_LOOKS: Final = 4


def read(server: RunningServer) -> Mapping[str, int]:
    """Return the counters now; nothing where the server does not answer the question.

    What a server does in a slice must not hang on whether it tells its counters.
    """
    try:
        answered = server.engine.status(server)
    except ServerError:
        return {}
    return counters((name, str(value)) for name, value in answered.items())


def counters(rows: Iterable[Sequence[str]]) -> Mapping[str, int]:
    """Return what is a counter we know among rows of names and values."""
    found: dict[str, int] = {}
    for row in rows:
        name, value = row[0].lower(), row[-1]
        known = _WANTED.fullmatch(name) and not _GAUGES.match(name)
        if known and _NUMBER.fullmatch(value) and int(value) < _LARGEST:
            found[name] = int(value)
    return found


@lru_cache(maxsize=8)
def cost(server: RunningServer) -> Mapping[str, int]:
    """Return what one look adds to the counters of this server; measured at the first call."""
    looks = [read(server)]
    # One that does not answer may take its time over it.
    if looks[0]:
        looks += [read(server) for _ in range(_LOOKS - 1)]
    steps = [between(earlier, later) for earlier, later in pairwise(looks)]
    if not steps:
        return {}
    names = set(steps[0]).intersection(*steps[1:])
    return {name: min(step[name] for step in steps) for name in sorted(names)}


def between(
    before: Mapping[str, int], after: Mapping[str, int], cost: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Return what grew between two looks, less what a look costs.

    Each look counts itself in part; the rest of the first and the beginning of the second are in
    the difference, and make one whole look. A counter that was reset has not grown.
    """
    taken = cost or {}
    grown = {
        name: after[name] - before[name] - taken.get(name, 0)
        for name in sorted(after.keys() & before.keys())
    }
    changed = [(name, value) for name, value in grown.items() if value > 0]
    return dict(changed[:ENGINE_COUNTERS_MAX])
