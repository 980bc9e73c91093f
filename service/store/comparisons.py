"""Queries for comparing what is stored: commits by what people call them, samples of many runs.

Words and ids come in, keys and plain numbers go out. What is compared with what is for the flows
to say.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from sqlalchemy import select

from results.metric import THROUGHPUT
from results.slice import SideName
from service.store.commits import sha_begins
from service.store.names import one_of
from service.store.series import key_of
from service.store.tables import CommitRow, SampleRow, SeriesRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ColumnElement
    from sqlalchemy.orm import Session

    from results.series import SeriesKey

    Starts = tuple[tuple[float, ...], ...]

#: Commits of one name that are told: enough to see that it is not one.
CALLED_MAX: Final = 5
#: Fewer digits than git would take mean too many commits to be meant.
_DIGITS: Final = re.compile(r"[0-9a-fA-F]{4,64}")


def commits_called(session: Session, name: str, *, fork: str | None) -> list[tuple[str, str]]:
    """Return (fork, sha) of the commits that a name can mean, of one fork where given.

    By the first digits of a hash; where no hash has them, by the whole subject, which is what
    imported commits are known by.
    """
    if _DIGITS.fullmatch(name):
        by_hash = _called(session, *sha_begins(name.lower()), fork=fork)
        if by_hash:
            return by_hash
    return _called(session, CommitRow.subject == name, fork=fork)


def throughputs(session: Session, run_ids: Sequence[str]) -> dict[str, dict[SeriesKey, Starts]]:
    """Return the candidate's throughputs by run and series, as starts x slices."""
    query = (
        select(SampleRow.run, SampleRow.series, SampleRow.start_index, SampleRow.value)
        .join(SeriesRow, SeriesRow.id == SampleRow.series)
        .where(
            one_of(SampleRow.run, run_ids),
            SampleRow.side == SideName.CANDIDATE,
            SeriesRow.metric == THROUGHPUT.name,
            # A throughput of zero has no logarithm; a stranger's runner may send one.
            SampleRow.value > 0,
        )
        .order_by(SampleRow.start_index, SampleRow.sequence)
    )
    found: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(dict)
    for run, series, start, value in session.execute(query):
        found[run, series].setdefault(start, []).append(value)
    ids = {series for _, series in found}
    keys = {
        row.id: key_of(row)
        for row in session.scalars(select(SeriesRow).where(SeriesRow.id.in_(ids)))
    }
    by_run: dict[str, dict[SeriesKey, Starts]] = defaultdict(dict)
    for (run, series), starts in sorted(found.items()):
        by_run[run][keys[series]] = tuple(tuple(slices) for slices in starts.values())
    return dict(by_run)


def _called(
    session: Session, *conditions: ColumnElement[bool], fork: str | None
) -> list[tuple[str, str]]:
    query = (
        select(CommitRow.fork, CommitRow.sha)
        .where(*conditions)
        .order_by(CommitRow.fork, CommitRow.position.desc())
        .limit(CALLED_MAX)
    )
    if fork is not None:
        query = query.where(CommitRow.fork == fork)
    return [(of, sha) for of, sha in session.execute(query)]
