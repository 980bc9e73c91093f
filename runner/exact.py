"""Exact counters of a running server: every case asked once, with what the server counted for it.

A server of MySQL's family comes in, a value for each case goes out. Counters are those of the
asking session between FLUSH STATUS and SHOW STATUS, so that nothing else in the server shows;
InnoDB's and RocksDB's own are counted server-wide and only mean something while nobody else works.
The cases' tables are made in the server and left there: measure on a copy that is thrown away.
"""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runner.errors import ServerError
from runner.servers import session
from workloads.exact import (
    CASES,
    USE,
    Difference,
    ExactCase,
    cases_for,
    differences,
    making,
    plan_lines,
)
from workloads.workload import MYSQL_FAMILY

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from runner.servers.engine import RunningServer
    from workloads.exact import Case
    from workloads.plan import DatasetPlan

__all__ = ["CASES", "Difference", "ExactCase", "differences", "measure"]

#: As many lines as a query's answer or plan can have; a hostile server answers what it likes.
_LINES_MAX: Final = 1_000
_CELL_MAX: Final = 1_000
_NUMBER: Final = re.compile(r"[0-9]{1,20}")
#: Counters of the session: how often the storage engine was asked for what.
_HANDLER: Final = "handler_"
#: Counts and no times.
_PERF_LEVEL: Final = 2
#: Of the whole server, so differences are taken; only what a query repeats while its plan stays.
_GLOBAL_STATUS: Final = "SHOW GLOBAL STATUS LIKE 'Innodb_rows_read'"
#: The same of RocksDB's perf context: what it read and stepped over. Comparisons and cache hits
#: depend on how the levels lie and are left out.
_PERF_STATUS: Final = (
    "SELECT CONCAT('rocksdb_perf_', LOWER(stat_type)), value "
    "FROM information_schema.rocksdb_perf_context_global WHERE stat_type IN "
    "('GET_READ_BYTES', 'ITER_READ_BYTES', 'INTERNAL_DELETE_SKIPPED_COUNT', "
    "'INTERNAL_KEY_SKIPPED_COUNT', 'INTERNAL_MERGE_COUNT')"
)
_LOOK: Final = (_GLOBAL_STATUS,)
#: Rows between the parts of what a session answers.
_MARK: Final = "forkwatch-exact-mark"
_MARKING: Final = "SELECT 'forkwatch-exact-mark'"
#: What is asked at the last moment still gets so long: a client takes 30 ms to start.
_PATIENCE_S_MIN: Final = 1.0


def measure(
    server: RunningServer,
    dataset: DatasetPlan | None,
    *,
    names: Collection[str] | None = None,
    until: float = math.inf,
) -> tuple[ExactCase, ...]:
    """Return what the server did for each case; nothing where its engine has no such counters.

    Args:
        server: Up and at rest, with nobody else connected.
        dataset: What is loaded in it; None where nothing is.
        names: The cases to ask; all that can be asked where None.
        until: No further case is asked when the monotonic clock shows this.

    Raises:
        ServerError: It refused a statement, answered what cannot be read, or took longer.
    """
    if server.spec.engine not in MYSQL_FAMILY:
        return ()
    storage_engine = server.spec.storage_engine
    looks = _LOOK if storage_engine != "rocksdb" else (*_LOOK, _PERF_STATUS)
    asking = _Asking(server=server, looks=looks, until=until)
    asking.rows(";\n".join(making(storage_engine=storage_engine)))
    kind, rows = (None, 0) if dataset is None else (dataset.kind, dataset.rows)
    found = []
    for case in cases_for(kind, rows):
        if time.monotonic() >= until:
            break
        if names is None or case.name in names:
            found.append(asking.ask(case))
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class _Asking:
    """A server that is being asked."""

    server: RunningServer
    #: Statements that show counters of the whole server.
    looks: Sequence[str]
    until: float

    def rows(self, statement: str) -> list[tuple[str, ...]]:
        """Return the server's answer, in a session of its own."""
        left_s = max(_PATIENCE_S_MIN, self.until - time.monotonic())
        timeout_s = min(session.STATEMENT_TIMEOUT_S, left_s)
        return session.rows(self.server, statement, timeout_s=timeout_s)

    def ask(self, case: Case) -> ExactCase:
        """Ask one case until it is known."""
        explained = _bounded(self.rows(f"{USE}; EXPLAIN FORMAT=TRADITIONAL {case.statement}"))
        # The first time opens tables and reads their statistics.
        self.rows(f"{USE}; {case.statement}")
        once, _ = self._counted(case)
        again, answer = self._counted(case)
        # MySQL 8.0.12 counts rows of its own dictionary that the background reads: what is not the
        # same twice in a row is not exact.
        counters = {name: count for name, count in sorted(again.items()) if once.get(name) == count}
        return ExactCase(
            name=case.name,
            statement=case.statement,
            counters=counters,
            plan=plan_lines(explained),
            explained="\n".join("\t".join(row) for row in explained),
            answer=tuple(answer),
        )

    def _counted(self, case: Case) -> tuple[dict[str, int], list[tuple[str, ...]]]:
        """Return what the server counted for one query, and its answer."""
        perf = [f"SET SESSION rocksdb_perf_context_level = {_PERF_LEVEL}"]
        statements = [
            USE,
            *(perf if len(self.looks) > 1 else []),
            *self.looks,
            _MARKING,
            "FLUSH STATUS",
            case.statement,
            f"SHOW SESSION STATUS LIKE '{_HANDLER}%'",
            _MARKING,
            *self.looks,
        ]
        parts = _parts(self.rows("; ".join(statements)))
        if len(parts) != 3:  # noqa: PLR2004  before, the case, after
            raise ServerError("measure", f"exact counters: {case.name} was not answered as asked")
        before, middle, after = parts
        at = next(
            (at for at, row in enumerate(middle) if row[0].lower().startswith(_HANDLER)),
            len(middle),
        )
        earlier, later = _numbers(before), _numbers(after)
        grown = {name: later[name] - earlier[name] for name in later.keys() & earlier.keys()}
        return {**_numbers(middle[at:]), **grown}, _bounded(middle[:at])


def _parts(rows: Sequence[tuple[str, ...]]) -> list[list[tuple[str, ...]]]:
    """Return the rows between marks."""
    parts: list[list[tuple[str, ...]]] = [[]]
    for row in rows:
        if row == (_MARK,):
            parts.append([])
        else:
            parts[-1].append(row)
    return parts


def _numbers(rows: Sequence[tuple[str, ...]]) -> dict[str, int]:
    """Return names and plain numbers; what is no number is no counter."""
    return {
        row[0].lower(): int(row[1])
        for row in rows
        if len(row) == 2 and _NUMBER.fullmatch(row[1])  # noqa: PLR2004  a name and a number
    }


def _bounded(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return [tuple(cell[:_CELL_MAX] for cell in row) for row in rows[:_LINES_MAX]]
