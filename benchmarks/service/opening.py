"""How long pages and the API take to answer over HTTP, one request after the other.

A filled store says which addresses there are; the address of a service on it comes in,
milliseconds go out. Addresses are drawn by an explicit generator, and each is asked for once.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

import httpx

from benchmarks.service.branch import WEEK
from benchmarks.service.documents import FORK
from results.metric import THROUGHPUT
from service.store import alerts, hosts, series
from service.web.addresses import alert_path, commit_path, compare_path, host_path, workload_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.service.filling import Filler
    from service.store.database import Database

ANSWER_SECONDS_MAX: Final = 120
#: Asked for before the clock runs: templates are compiled then, and connections made.
WARM_UP: Final = 3
#: Commits whose pages are opened are among so many of the newest: their documents have seconds.
NEWEST: Final = 200
RELEASES: Final = 4


@dataclass(frozen=True, kw_only=True)
class Page:
    """A kind of page, and how an address of it is drawn."""

    what: str
    address: Callable[[random.Random], str]


@dataclass(frozen=True, kw_only=True)
class Opened:
    """What the addresses of one kind took."""

    what: str
    answer_ms: Sequence[float]
    kilobytes: float


def pages_of(database: Database, filler: Filler) -> list[Page]:
    """Return every kind of page of a store."""
    with database.reading() as session:
        known_alerts = [alert.id for alert in alerts.newest(session, FORK)]
        ids = [key.id for key in series.of_fork(session, FORK, metric=THROUGHPUT.name)]
        names = [host.name for host in hosts.everything(session)]
    branch = filler.branch
    newest = range(max(1, branch.commits - NEWEST), branch.commits)

    def shas(rng: random.Random, count: int) -> list[str]:
        return [branch.sha(place) for place in sorted(rng.sample(newest, count))]

    def compared(rng: random.Random) -> str:
        baseline, candidate = shas(rng, 2)
        return compare_path(FORK, baseline, candidate)

    def released(rng: random.Random) -> str:
        return f"/releases?{urlencode({'fork': FORK, 'refs': ','.join(shas(rng, RELEASES))})}"

    return [
        Page(what="overview", address=lambda _: "/"),
        Page(
            what="workload",
            address=lambda rng: workload_path(FORK, rng.choice(filler.shape.workloads)),
        ),
        Page(what="commit", address=lambda rng: commit_path(FORK, shas(rng, 1)[0])),
        Page(what="alert", address=lambda rng: alert_path(rng.choice(known_alerts))),
        Page(what="bisects", address=lambda _: "/bisects"),
        Page(what="compare", address=compared),
        Page(what="releases", address=released),
        Page(what="digests", address=lambda _: "/digests"),
        Page(what="a digest", address=lambda _: f"/digests/{WEEK.name}"),
        Page(what="hosts", address=lambda _: "/hosts"),
        Page(what="host", address=lambda rng: host_path(rng.choice(names))),
        Page(what="precision", address=lambda _: "/precision"),
        Page(what="metrics", address=lambda _: "/metrics"),
        Page(what="API: list of series", address=lambda _: f"/api/v1/series?fork={quote(FORK)}"),
        Page(what="API: a series", address=lambda rng: f"/api/v1/series/{rng.choice(ids)}"),
    ]


def opened(url: str, pages: Sequence[Page], *, times: int, seed: int) -> Iterator[Opened]:
    """Open so many addresses of each kind, and give what each kind took."""
    with httpx.Client(base_url=url, timeout=ANSWER_SECONDS_MAX) as client:
        for page in pages:
            rng = random.Random(f"{seed} {page.what}")
            for _ in range(WARM_UP):
                client.get(page.address(rng)).raise_for_status()
            answers, size = [], 0
            for _ in range(times):
                address = page.address(rng)
                began = time.perf_counter()
                size += len(client.get(address).raise_for_status().content)
                answers.append(1_000 * (time.perf_counter() - began))
            yield Opened(what=page.what, answer_ms=answers, kilobytes=size / times / 1_000)
