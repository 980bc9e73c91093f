"""The verdict table of an alert at the width of a phone.

Rows come in, lines of at most `WIDTH` characters go out, the loudest first; what does not fit is
counted and said.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from reports.facts import loudest_first
from reports.markup import one_line
from reports.numbers import NOT_KNOWN, mark, ratio, ratio_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reports.rows import Row

#: Characters of one line: a window of 300 pixels shows about so many before it breaks them.
WIDTH: Final = 36
#: More lines are not read in a chat; the page has all of them.
LINES_MAX: Final = 12
#: Name, mark, ratio and interval fill the width.
_NAME, _RATIO, _INTERVAL = 13, 5, 14


def narrow_table(rows: Sequence[Row], *, lines_max: int = LINES_MAX) -> str:
    """Return the first rows as lines of columns: workload, ratio and its interval."""
    shown = loudest_first(rows)[:lines_max]
    heading = f"{'workload':<{_NAME}}  {'ratio':>{_RATIO}}  {_confidence(shown):>{_INTERVAL}}"
    return "\n".join([heading, *(_line(row) for row in shown)])


def left_out(rows: Sequence[Row], *, lines_max: int = LINES_MAX) -> str:
    """Return what the table lacks in words, or nothing where it has all rows."""
    others = loudest_first(rows)[lines_max:]
    if not others:
        return ""
    counts = Counter(row.verdict.decision.value if row.verdict else "not judged" for row in others)
    what = ", ".join(f"{count} {decision}" for decision, count in counts.items())
    return f"and {len(others)} more workloads that do not fit here: {what}"


def _line(row: Row) -> str:
    name = one_line(row.workload, length_max=WIDTH)
    sign = mark(row.ratio) or " "
    interval = ratio_interval(row.verdict.change.interval) if row.verdict else NOT_KNOWN
    numbers = f"{sign}{ratio(row.ratio):>{_RATIO}}  {interval:>{_INTERVAL}}"
    if len(name) <= _NAME:
        return f"{name:<{_NAME}} {numbers}"
    # A cut name may be another workload's: it has a line of its own.
    return f"{name}\n{'':<{_NAME}} {numbers}"


def _confidence(rows: Sequence[Row]) -> str:
    for row in rows:
        if row.verdict is not None:
            return f"{row.verdict.change.interval.confidence * 100:g} % interval"
    return "interval"
