"""How fast the service is: `make bench-service`, on SQLite and on PostgreSQL.

A history is made once and copied, so that both have the same one. Each figure is measured on it: a
digest, one document, pages over HTTP, and many documents at once. It wants the machine to itself;
`--history 10` measures a history that is ten times as long, too, and says what that costs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.service import accepting, archive, burst, opening
from benchmarks.service.branch import Branch
from benchmarks.service.copying import copy_store
from benchmarks.service.documents import WORKLOADS, Shape
from benchmarks.service.figures import Figure, growth, table
from benchmarks.service.filling import Filler
from benchmarks.service.served import Served
from service.store.database import Database
from service.store.migrate import upgrade
from tests.fakes.postgres_server import PostgresServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SQLITE: Final = "SQLite"
POSTGRESQL: Final = "PostgreSQL"
DATABASES: Final = {
    "sqlite": (SQLITE,),
    "postgresql": (POSTGRESQL,),
    # What is measured is written into: the copy comes first.
    "both": (POSTGRESQL, SQLITE),
}
#: Aims of the issue, in seconds, and for pages in milliseconds.
DOCUMENT_AIM_S: Final = 1.0
DIGEST_AIM_S: Final = 10.0
PAGE_AIM_MS: Final = 200.0


@dataclass(frozen=True, kw_only=True)
class Store:
    """A filled store that is measured."""

    name: str
    url: str
    folder: Path
    filler: Filler
    database: Database


def main(words: Sequence[str] | None = None) -> None:
    """Measure and print a table; progress goes to stderr."""
    chosen = _arguments().parse_args(words)
    began = time.perf_counter()
    lengths = sorted({chosen.commits, chosen.commits * chosen.history})
    figures = [figure for commits in lengths for figure in _figures(chosen, commits)]
    print(table(figures))
    if len(lengths) > 1:
        print(f"\n{growth(figures)}")
    print(f"\n{_conditions(chosen)}; {time.perf_counter() - began:,.0f} s, seed {chosen.seed}")


def _figures(chosen: argparse.Namespace, commits: int) -> Iterator[Figure]:
    branch = Branch(commits=commits, commits_a_week=chosen.commits)
    shape = Shape(
        workloads=WORKLOADS[: chosen.workloads], starts=chosen.starts, seconds=chosen.seconds
    )
    with tempfile.TemporaryDirectory(prefix="forkwatch-") as name:
        folder = Path(name)
        # A short history has an alert too, for its page.
        every = max(1, min(chosen.alert_every, chosen.commits // 2))
        filler = Filler(branch, shape, seed=chosen.seed, alert_every=every)
        url = f"sqlite:///{folder / 'service.sqlite'}"
        upgrade(url)
        with _opened(url) as database:
            filler.fill(database, say=_say)
            archive.settle(database)
            archive.bisect(database)
            for kind in DATABASES[chosen.database]:
                with _store(kind, url, folder / kind, filler, filled=database) as store:
                    yield from _measured(chosen, store)


@contextmanager
def _store(
    kind: str, url: str, folder: Path, filler: Filler, *, filled: Database
) -> Iterator[Store]:
    """Give the filled store, or a copy of it on PostgreSQL."""
    folder.mkdir()
    if kind == SQLITE:
        yield Store(name=kind, url=url, folder=folder, filler=filler, database=filled)
        return
    with PostgresServer() as server:
        copied = server.new_database()
        upgrade(copied)
        with _opened(copied) as database:
            copy_store(filled, database)
            _say("copied to PostgreSQL")
            yield Store(name=kind, url=copied, folder=folder, filler=filler, database=database)


@contextmanager
def _opened(url: str) -> Iterator[Database]:
    database = Database(url)
    try:
        yield database
    finally:
        database.close()


def _measured(chosen: argparse.Namespace, store: Store) -> Iterator[Figure]:
    for figure in _in_process(chosen, store):
        _say(" | ".join(figure.cells))
        yield figure
    first = store.filler.branch.commits + chosen.accepted
    prepared = burst.prepare(store.database, store.filler, first=first, count=chosen.documents)
    with Served(store.folder, store.url) as served:
        pages = opening.pages_of(store.database, store.filler)
        for one in opening.opened(served.url, pages, times=chosen.times, seed=chosen.seed):
            page = f"{one.what} ({one.kilobytes:,.0f} kB)"
            figure = _figure(store, one.what, "ms", one.answer_ms, aim=PAGE_AIM_MS)
            _say(f"{page}: {' | '.join(figure.cells)}")
            yield figure
        answers = burst.send(served.url, prepared, clients=chosen.clients)
        kept = burst.kept(store.database, prepared, store.filler)
    _say(f"answers to {chosen.documents} documents: {burst.statuses(answers)}")
    what = f"{chosen.documents} documents at once, {chosen.clients} clients"
    yield _figure(store, f"{what}: an answer", "s", [answer.seconds for answer in answers])
    yield _figure(store, f"{what}: lost", "", [kept.lost], aim=0)
    yield _figure(store, f"{what}: double", "", [kept.double], aim=0)


def _in_process(chosen: argparse.Namespace, store: Store) -> Iterator[Figure]:
    took = archive.write_digest(store.database, store.folder, times=chosen.digests)
    yield _figure(store, "digest of a week", "s", took, aim=DIGEST_AIM_S)
    archive.keep_digests(store.database)
    accepted = list(accepting.accept(store.database, store.filler, count=chosen.accepted))
    for what, values in (
        ("one document: accept", [one.take_s for one in accepted]),
        ("one document: judge", [one.judge_s for one in accepted]),
    ):
        yield _figure(store, what, "s", values)
    both = [one.both_s for one in accepted]
    yield _figure(store, "one document: accept and judge", "s", both, aim=DOCUMENT_AIM_S)


def _figure(
    store: Store, what: str, unit: str, values: Sequence[float], *, aim: float | None = None
) -> Figure:
    return Figure(
        what=what,
        database=store.name,
        commits=store.filler.branch.commits,
        unit=unit,
        values=values,
        aim=aim,
    )


def _conditions(chosen: argparse.Namespace) -> str:
    return (
        f"{len(WORKLOADS[: chosen.workloads])} workloads, {chosen.starts} starts of one "
        f"slice, {chosen.starts * chosen.seconds} s by the second; pages one after the other"
    )


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service", description=__doc__)
    numbers = (
        ("--commits", 2_000, "commits of the history, all seen within a week"),
        ("--history", 1, "measure a history so many times longer, too"),
        ("--workloads", len(WORKLOADS), "the first so many of the suite"),
        ("--starts", Shape().starts, "server starts of a run"),
        ("--seconds", Shape().seconds, "seconds of a slice"),
        ("--alert-every", 100, "one commit of so many is slow and has an alert"),
        ("--digests", 3, "times that the digest is written"),
        ("--accepted", 10, "documents that are taken in and judged one by one"),
        ("--documents", 100, "documents that are sent at once, each of them twice"),
        ("--clients", 20, "clients that send them"),
        ("--times", 40, "addresses of each kind of page"),
        ("--seed", 20261122, "of everything random"),
    )
    parser.add_argument("--database", choices=list(DATABASES), default="both")
    for name, usual, meaning in numbers:
        parser.add_argument(name, type=int, default=usual, help=f"{meaning} ({usual})")
    return parser


if __name__ == "__main__":
    main()
