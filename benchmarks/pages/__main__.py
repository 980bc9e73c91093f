"""How fast the page of a workload answers and draws, by the length of its history.

A database is filled with one series of each length, served on loopback, and its page opened in
headless Chromium. Answers are timed from here over HTTP; drawing is timed by the browser from the
page's last byte to its finished chart, with the scripts in its cache. It wants the machine to
itself.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import httpx
from fastapi import FastAPI

from service.store.database import Database
from service.store.migrate import upgrade
from service.web.pages import pages_router
from tests.fakes.chromium import DESKTOP, chromium
from tests.fakes.loopback import Loopback
from tests.fakes.stored_history import a_history

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playwright.sync_api import Page

LENGTHS: Final = (500, 5_000, 50_000)
#: What is asked of a page: as it comes, and with everything there is.
RANGES: Final = (("usual", ""), ("all", "?last=50000"))
#: The aims of a series of 5,000 points.
ANSWER_AIM_MS: Final = 200
DRAW_AIM_MS: Final = 1_000
_DRAW_SECONDS_MAX: Final = 60
#: Milliseconds from the last byte of the page to the mark that charts.js sets.
_DRAWN: Final = (
    "() => performance.getEntriesByName('forkwatch-drawn')[0].startTime"
    " - performance.getEntriesByType('navigation')[0].responseEnd"
)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What one page of one length took."""

    commits: int
    asked: str
    answer_ms: Sequence[float]
    draw_ms: Sequence[float]
    kilobytes: float
    drawn: int

    @property
    def line(self) -> str:
        """The figure as a line of a table."""
        cells = (
            f"{self.commits:,}",
            self.asked,
            f"{self.drawn:,}",
            f"{self.kilobytes:,.0f}",
            _spread(self.answer_ms),
            _spread(self.draw_ms),
        )
        return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure every length and print a table; progress goes to stderr."""
    chosen = _arguments()
    print("| commits | asked | drawn | page, kB | answer, ms | draw, ms |")
    print("|---|---|---|---|---|---|")
    for length in chosen.lengths:
        for figure in _figures(length, times=chosen.times):
            print(figure.line, flush=True)
    print(
        f"\nMedian (lowest to highest) of {chosen.times} loads each. Aims at 5,000 commits: "
        f"{ANSWER_AIM_MS} ms to answer, {DRAW_AIM_MS:,} ms to draw."
    )


def _figures(length: int, *, times: int) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="forkwatch-") as folder:
        url = f"sqlite:///{Path(folder) / 'service.sqlite'}"
        upgrade(url)
        database = Database(url)
        began = time.perf_counter()
        with database.writing() as session:
            a_history(session, commits=length)
        took = time.perf_counter() - began
        print(f"{length:,} commits stored in {took:.1f} s", file=sys.stderr, flush=True)
        app = FastAPI()
        app.include_router(pages_router(database))
        with Loopback(app) as running, chromium() as browser:
            # As forkwatch serve does: what was made at the start is not looked through again.
            gc.collect()
            gc.freeze()
            page = browser.new_page(viewport=DESKTOP)
            for asked, query in RANGES:
                path = f"{running.url}/forks/demo/workloads/scan{query}"
                yield _figure(page, path, length, asked, times=times)
        database.close()


def _figure(page: Page, url: str, length: int, asked: str, *, times: int) -> Figure:
    answers, size = [], 0
    with httpx.Client(timeout=_DRAW_SECONDS_MAX) as client:
        client.get(url)
        for _ in range(times):
            began = time.perf_counter()
            size = len(client.get(url).raise_for_status().content)
            answers.append(1_000 * (time.perf_counter() - began))
    # The first load fills the browser's cache.
    drawn = [_drawn(page, url) for _ in range(times + 1)][1:]
    marks: Any = page.locator("svg .mark-symbol.role-mark path").count()
    return Figure(
        commits=length,
        asked=asked,
        answer_ms=answers,
        draw_ms=drawn,
        kilobytes=size / 1_000,
        drawn=int(marks),
    )


def _drawn(page: Page, url: str) -> float:
    page.goto(url)
    page.wait_for_selector("[data-state=drawn]", timeout=1_000 * _DRAW_SECONDS_MAX)
    return float(page.evaluate(_DRAWN))


def _spread(values: Sequence[float]) -> str:
    return f"{median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages", description=__doc__)
    parser.add_argument("--lengths", type=int, nargs="+", default=list(LENGTHS), metavar="COMMITS")
    parser.add_argument("--times", type=int, default=7, help="loads of each page")
    return parser.parse_args()


if __name__ == "__main__":
    main()
