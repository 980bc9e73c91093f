"""MyRocks at rest: memtables flushed, no compaction running or waiting, level 0 compacted.

A running server comes in, what is left of its background work goes out. Two families have it:
MariaDB as a plugin, and Facebook's MySQL, which has more to ask; what a server does not have is not
asked for.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

from runner.errors import ServerError
from runner.servers import session
from runner.servers.settle import wait

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runner.servers.engine import RunningServer

#: Counters of `rocksdb_cfstats` that are zero at rest.
_PENDING: Final[Mapping[str, str]] = {
    "NUM_IMMUTABLE_MEM_TABLE": "memtables to flush",
    "MEM_TABLE_FLUSH_PENDING": "flushes waiting",
    "COMPACTION_PENDING": "compactions waiting",
}
#: Compactions that run, where the server has a table of them (Facebook's has).
_HAS_ACTIVE: Final = (
    "SELECT COUNT(*) FROM information_schema.tables "
    "WHERE LOWER(table_name) = 'rocksdb_active_compaction_stats'"
)
_COUNT_ACTIVE: Final = "SELECT COUNT(*) FROM information_schema.rocksdb_active_compaction_stats"
_FLUSH: Final = "rocksdb_force_flush_memtable_now"
#: Compaction of level 0, the one that is safe beside other work first. The other flushes as well
#: and has failed beside a compaction (facebook/mysql-5.6, issues 1200 and 1295): only at rest.
_LEVEL_0: Final = ("rocksdb_compact_lzero_now", "rocksdb_force_flush_memtable_and_lzero_now")
_COMPACT: Final = "rocksdb_compact_cf"
#: The line of level 0 in a report of compaction statistics: files, and those being compacted.
_FILES: Final = re.compile(r"(?:^|\\n|\n)\s*L0\s+([0-9]{1,6})/[0-9]{1,6}\s")
#: The sums of all levels: how many files are being compacted now.
_BUSY: Final = re.compile(r"(?:^|\\n|\n)\s*Sum\s+[0-9]{1,9}/([0-9]{1,9})\s")
#: Of a whole dataset, just loaded.
_STATEMENT_TIMEOUT_S: Final = 600.0


def settle(server: RunningServer, *, until: float) -> str:
    """Bring MyRocks to rest until the monotonic clock shows `until`; return what was left.

    After a load the whole tree is compacted, so that its shape is not that of one load's threads.

    Raises:
        ServerError: The server refused a statement, or has no MyRocks.
    """
    if _FLUSH not in _known(server, _FLUSH):
        raise ServerError("measure", "the server has no MyRocks: load its plugin (docs/engines.md)")
    _set(server, f"{_FLUSH} = 1")
    found = wait(lambda: left(server), until=until)
    if found:
        return found
    if server.loading:
        for family in sorted(_families(server)):
            _set(server, f"{_COMPACT} = '{family}'")
    elif level_0_files(server):
        _compact_level_0(server)
    else:
        return ""
    return wait(lambda: left(server), until=max(until, time.monotonic()))


def _compact_level_0(server: RunningServer) -> None:
    known = _known(server, *_LEVEL_0)
    way = next((name for name in _LEVEL_0 if name in known), None)
    if way is not None:
        _set(server, f"{way} = 1")


def _known(server: RunningServer, *names: str) -> set[str]:
    """Return those of these variables that the server has."""
    listed = ", ".join(f"'{name}'" for name in names)
    found = session.rows(server, f"SHOW GLOBAL VARIABLES WHERE variable_name IN ({listed})")
    return {row[0].lower() for row in found}


def _set(server: RunningServer, text: str) -> None:
    session.rows(server, f"SET GLOBAL {text}", timeout_s=_STATEMENT_TIMEOUT_S)


def left(server: RunningServer) -> str:
    """Return the background work that is left, in words, or an empty text."""
    names = ", ".join(f"'{name}'" for name in _PENDING)
    found = session.numbers(
        session.rows(
            server,
            "SELECT stat_type, CAST(SUM(value) AS UNSIGNED) "  # noqa: S608  names of ours
            "FROM information_schema.rocksdb_cfstats "
            f"WHERE stat_type IN ({names}) GROUP BY stat_type",
        )
    )
    words = [
        f"{found[name.lower()]} {what}"
        for name, what in _PENDING.items()
        if found.get(name.lower())
    ]
    running = _compactions(server)
    if running:
        words.append(f"{running} files in compactions")
    return ", ".join(words)


def _compactions(server: RunningServer) -> int:
    """Return how much is being compacted now: jobs where they can be asked for, else files."""
    (there,) = session.rows(server, _HAS_ACTIVE)
    if there[0] != "0":
        (found,) = session.rows(server, _COUNT_ACTIVE)
        return int(found[0])
    return sum(int(number) for number in _BUSY.findall(_report(server)))


def level_0_files(server: RunningServer) -> int:
    """Return how many files lie on level 0, of all column families."""
    return sum(int(number) for number in _FILES.findall(_report(server)))


def _report(server: RunningServer) -> str:
    """Return the engine's own report, in which lines end in the client's two characters."""
    return "\n".join("\t".join(row) for row in session.rows(server, "SHOW ENGINE ROCKSDB STATUS"))


def _families(server: RunningServer) -> set[str]:
    """Return the column families by name, as far as a name can stand in a statement."""
    found = session.rows(server, "SELECT DISTINCT cf_name FROM information_schema.rocksdb_cfstats")
    return {row[0] for row in found if re.fullmatch(r"[A-Za-z0-9_]{1,64}", row[0])}
