"""Pictures of the pages: `make screenshots`.

A store is filled by the real flow from a told week (`story`), each page is opened in headless
Chromium on a desktop and a phone, light and dark, and photographed. All pictures go to a folder to
be looked at; a handful is kept for docs/pages.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, cast

from dbos import DBOS

from benchmarks.screenshots.searching import searched
from benchmarks.screenshots.story import STEPS, StoryFork, StoryRunners
from service.app.compose import compose
from service.channels.file_digests import FileDigests
from service.core.alert_actions import AlertAction, AlertOrder, OrderVia
from service.core.settings import load_settings
from service.core.weeks import week_of, zone_of
from service.flows.alert_actions import StoredAlertActions
from service.flows.digest import DigestSteps
from service.store import alerts, commits, hosts, migrate
from service.web.addresses import (
    alert_path,
    commit_path,
    compare_path,
    host_path,
    workload_path,
)
from tests.fakes.chromium import DESKTOP, PHONE, chromium
from tests.fakes.loopback import Loopback
from tests.fakes.memory_fork import MemoryAlerts, StillClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fastapi import FastAPI
    from playwright.sync_api import Browser, Page, ViewportSize

    from benchmarks.screenshots.story import Step
    from service.app.compose import Service
    from service.core.model import Alert
    from service.core.ports import CodeHost

#: The Monday of the week that is told, before people come to work.
BEGIN: Final = datetime(2026, 11, 2, 6, 0, tzinfo=UTC)
#: Between commits, so that the story ends on its Friday.
PAUSE: Final = timedelta(hours=5)
LOOKED_AT: Final = datetime(2026, 11, 9, 7, 30, tzinfo=UTC)
#: Nothing waits on purpose; this only bounds a hang.
PATIENCE_SECONDS: Final = 120
DRAW_SECONDS_MAX: Final = 30
_UNDER_WAY: Final = ["PENDING", "ENQUEUED"]
VIEWS: Final[dict[str, ViewportSize]] = {"desktop": DESKTOP, "phone": PHONE}
SCHEMES: Final = ("light", "dark")
#: What the documentation shows, as (page, view, scheme); each a screen, not a whole page.
KEPT: Final = (
    ("overview", "desktop", "light"),
    ("overview", "phone", "dark"),
    ("trend", "desktop", "light"),
    ("alert", "desktop", "dark"),
    ("compare", "desktop", "light"),
    ("digest", "desktop", "light"),
)
IMAGES: Final = Path(__file__).parents[2] / "docs" / "images"
#: Of a picture that is kept: what a reader sees without scrolling, and no larger than it has to be.
KEPT_HEIGHT: Final = 716
#: A repository is cloned by everybody, and pictures are kept in it for ever.
KEPT_BYTES_MAX: Final = 150 * 1024


@dataclass(frozen=True, kw_only=True)
class Told:
    """A store that the story was told to."""

    app: FastAPI
    #: Address of each page, by the name of its pictures.
    pages: dict[str, str]


def main() -> int:
    """Take all pictures; return 1 where one that is to be kept is too large."""
    chosen = _arguments()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="forkwatch-") as home,
        told(Path(home)) as found,
        Loopback(found.app) as running,
        chromium() as browser,
    ):
        _photograph(browser, running.url, found.pages, chosen.folder)
        large = _keep(browser, running.url, found.pages, chosen.images)
    print(f"pictures are in {chosen.folder}; those of the documentation in {chosen.images}")
    for name in large:
        print(f"{name} is larger than {KEPT_BYTES_MAX // 1024} KiB", file=sys.stderr)
    return 1 if large else 0


@contextmanager
def told(home: Path, steps: Sequence[Step] = STEPS) -> Iterator[Told]:
    """Tell a story to a whole service; give its application and its pages."""
    settings = load_settings(home=home, host_class="small", poll_seconds=0.05)
    migrate.upgrade(settings.data_url)
    clock, fork = StillClock(BEGIN), StoryFork()
    service = compose(
        settings,
        clock=clock,
        # What only pull requests ask of a code host is not asked here.
        code_host=cast("CodeHost", fork),
        dispatcher=StoryRunners(fork, clock),
        alerts=MemoryAlerts(),
    )
    try:
        DBOS.launch()
        service.flow.open_queue()
        for step in steps:
            fork.take(step, at=clock.now())
            clock.advance(PAUSE)
            service.watcher.look()
            _wait(lambda: not _unfinished(service))
        # A commit is finished before its flow has written down that it is.
        _wait(lambda: not DBOS.list_workflows(status=_UNDER_WAY, load_input=False))
    finally:
        DBOS.destroy(destroy_registry=True)
    opened = _settled_alerts(service, clock)
    clock.advance(LOOKED_AT - clock.now())
    week = _digest(service, clock)
    pages = _pages(fork, opened, week)
    if opened:
        workload = opened[0].workloads[0].workload
        bisect = searched(service.database, fork, workload=workload, clock=clock)
        pages["bisect"] = f"/bisects/{bisect}"
    with service.database.reading() as session:
        pages["host"] = host_path(hosts.everything(session)[0].name)
    yield Told(app=service.app, pages=pages)
    service.database.close()


def _wait(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the flows did not finish"
        time.sleep(0.02)


def _unfinished(service: Service) -> bool:
    with service.database.reading() as session:
        return bool(commits.unfinished(session, "demo"))


def _settled_alerts(service: Service, clock: StillClock) -> list[Alert]:
    """Have people take the first alert, and call the others true; return all, in order."""
    orders = StoredAlertActions(service.database, clock)
    with service.database.reading() as session:
        opened = sorted(alerts.newest(session, limit=10), key=lambda alert: alert.opened_at)
    if opened:
        orders.act(
            AlertOrder(
                alert=opened[0].id,
                action=AlertAction.ASSIGN,
                actor="github:grace",
                via=OrderVia.GITHUB.value,
                note="The check can move out of the loop.",
                owner="github:barbara",
                due_on=date(2026, 11, 11),
            )
        )
    for alert in opened[1:]:
        orders.act(
            AlertOrder(
                alert=alert.id,
                action=AlertAction.TRUE_ALARM,
                actor="github:grace",
                via=OrderVia.GITHUB.value,
            )
        )
    return opened


def _digest(service: Service, clock: StillClock) -> str:
    """Write the digest of the week that is over; return its name."""
    zone = zone_of("UTC")
    week = week_of(clock.now(), zone).after(-1).name
    steps = DigestSteps(
        database=service.database,
        clock=clock,
        sink=FileDigests(service.settings.home_folder),
        zone=zone,
        base_url=service.settings.pages_url,
    )
    steps.write("demo", week)
    return week


def _pages(fork: StoryFork, opened: Sequence[Alert], week: str) -> dict[str, str]:
    pages = {
        "overview": "/",
        "trend": workload_path("demo", "scan"),
        "digest": f"/digests/{week}",
        "digests": "/digests",
        "bisects": "/bisects",
        "precision": "/precision",
        "releases": f"/releases?fork=demo&refs={fork.commits[0].sha},{fork.commits[-1].sha}",
        "hosts": "/hosts",
    }
    if opened:
        slow = opened[0]
        pages |= {
            "alert": alert_path(slow.id),
            "commit": commit_path("demo", slow.sha),
            "compare": compare_path("demo", slow.baseline_sha, slow.sha),
        }
    return pages


def _photograph(browser: Browser, address: str, pages: dict[str, str], folder: Path) -> None:
    """Take a picture of each whole page in each view and scheme."""
    for view, scheme in ((view, scheme) for view in VIEWS for scheme in SCHEMES):
        page = _visitor(browser, view, scheme)
        for name, path in pages.items():
            _open(page, f"{address}{path}")
            page.screenshot(path=folder / f"{name}-{view}-{scheme}.png", full_page=True)
        page.context.close()


def _keep(browser: Browser, address: str, pages: dict[str, str], images: Path) -> list[str]:
    """Take the pictures of the documentation; return the names of those that are too large."""
    images.mkdir(parents=True, exist_ok=True)
    large = []
    for name, view, scheme in KEPT:
        page = _visitor(browser, view, scheme)
        _open(page, f"{address}{pages[name]}")
        path = images / (f"{name}.png" if view == "desktop" else f"{name}-{view}.png")
        page.screenshot(
            path=path,
            clip={"x": 0, "y": 0, "width": VIEWS[view]["width"], "height": KEPT_HEIGHT},
        )
        page.context.close()
        if path.stat().st_size > KEPT_BYTES_MAX:
            large.append(path.name)
    return large


def _visitor(browser: Browser, view: str, scheme: str) -> Page:
    colours: Literal["dark", "light"] = "dark" if scheme == "dark" else "light"
    # The trend's brush is for a mouse, and a phone has none.
    phone = view == "phone"
    context = browser.new_context(
        viewport=VIEWS[view], color_scheme=colours, has_touch=phone, is_mobile=phone
    )
    return context.new_page()


def _open(page: Page, url: str) -> None:
    """Open a page and wait until every chart in sight is drawn."""
    page.goto(url)
    page.wait_for_function(
        "() => [...document.querySelectorAll('[data-chart]')]"
        ".every(one => !one.checkVisibility() || one.dataset.state === 'drawn')",
        timeout=1_000 * DRAW_SECONDS_MAX,
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.screenshots", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=Path(".forkwatch/screenshots"), help="where all pictures go"
    )
    parser.add_argument(
        "--images", type=Path, default=IMAGES, help="where those of the documentation go"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
