"""The pages in headless Chromium: drawn, quiet, as wide as the screen, usable, accessible."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from service.core.tokens import Scope
from service.flows import host_noise
from service.store import runs
from service.store.database import Database
from service.store.migrate import upgrade
from service.web.digest_pages import digests_router
from tests.fakes import axe_core
from tests.fakes.chromium import DESKTOP, PHONE, chromium
from tests.fakes.loopback import Loopback
from tests.fakes.memory_fork import StillClock
from tests.fakes.page_clerk import PageClerk
from tests.fakes.run_documents import AT
from tests.fakes.stored_fork import SHAS, a_week
from tests.fakes.stored_history import a_history

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

TREND = "/forks/demo/workloads/scan"

#: Address, and how many charts are seen there without opening anything.
PAGES = {
    "overview": ("/", 0),
    "commit": (f"/forks/demo/commits/{SHAS[4]}", 2),
    "undecided": (f"/forks/demo/commits/{SHAS[5]}", 2),
    "broken-build": (f"/forks/demo/commits/{SHAS[6]}", 0),
    "trend": (TREND, 1),
    "long-trend": ("/forks/long/workloads/scan?last=50000", 1),
    "alert": ("/alerts/alert-1", 2),
    "hosts": ("/hosts", 0),
    "host": ("/hosts/bench-1", 0),
    "precision": ("/precision", 0),
    "digests": ("/digests", 0),
    "missing": ("/nowhere", 0),
}


@pytest.fixture(scope="module")
def clerk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageClerk]:
    """Store a week and a long history."""
    url = f"sqlite:///{tmp_path_factory.mktemp('store') / 'service.sqlite'}"
    upgrade(url)
    database = Database(url)
    with database.writing() as session:
        a_week(session)
        for sha in SHAS:
            for run in runs.of_commit(session, "demo", sha):
                host_noise.record(session, runs.document(session, run.id), at=AT)
        a_history(session, commits=1_300, fork="long", levels={700: 1.7})
    yield PageClerk(database, clock=StillClock(AT + timedelta(days=2)))
    database.close()


@pytest.fixture(scope="module")
def address(clerk: PageClerk) -> Iterator[str]:
    """Serve the pages on loopback; give their address."""
    clerk.app.include_router(digests_router(clerk.database))
    with Loopback(clerk.app) as running:
        yield running.url


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


def opened(page: Page, url: str, charts: int) -> None:
    """Open a page and wait until so many charts are drawn."""
    page.goto(url)
    page.wait_for_function(
        "count => [...document.querySelectorAll('[data-chart]')]"
        ".filter(place => place.checkVisibility())"
        ".filter(place => place.dataset.state === 'drawn')"
        ".filter(place => place.querySelector('svg .mark-symbol path')).length === count",
        arg=charts,
        timeout=60_000,
    )


def marks(page: Page) -> Any:
    return page.locator("svg .mark-symbol.role-mark path")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("size", "view"), [("desktop", DESKTOP), ("phone", PHONE)])
def test_pages_draw_quietly_fit_the_screen_and_break_no_rule(
    address: str, browser: Browser, tmp_path: Path, size: str, view: dict[str, Any], scheme: str
) -> None:
    context = browser.new_context(viewport=view, color_scheme=scheme)
    page = context.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    broken: dict[str, list[str]] = {}

    for name, (path, charts) in PAGES.items():
        opened(page, address + path, charts)
        page.screenshot(path=tmp_path / f"{name}-{size}-{scheme}.png", full_page=True)
        overflow = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert overflow == 0, f"{name} is wider than the screen"
        if found := axe_core.violations(page):
            broken[name] = found

    context.close()
    # A page that is not there is told to the console by the browser itself.
    assert [line for line in complaints if "404" not in line] == []
    assert [url for url in asked if not url.startswith(address)] == []
    assert broken == {}


def test_axe_core_would_notice(address: str, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(address)
    page.evaluate("document.querySelector('main').insertAdjacentHTML('beforeend', '<img src=x>')")

    assert [line for line in axe_core.violations(page) if line.startswith("image-alt")]
    page.close()


def test_charts_in_closed_details_are_drawn_when_they_open(address: str, browser: Browser) -> None:
    page = browser.new_page(viewport=DESKTOP)
    page.goto(address + PAGES["commit"][0])

    page.get_by_text("Measured alone").click()

    page.wait_for_function(
        "() => [...document.querySelectorAll('[data-state=drawn] svg')]"
        ".filter(svg => svg.clientWidth > 200).length === 4",
        timeout=60_000,
    )
    page.close()


def test_a_mark_on_the_trend_tells_its_commit_and_opens_it(address: str, browser: Browser) -> None:
    page = browser.new_page(viewport=DESKTOP)
    opened(page, address + TREND, 1)
    slow = marks(page).nth(3)

    slow.hover()
    page.wait_for_selector("#vg-tooltip-element.visible")
    told = page.locator("#vg-tooltip-element").inner_text()
    slow.click()
    page.wait_for_url(f"**/forks/demo/commits/{SHAS[4]}")

    assert "regression" in told
    assert "Check the record format in row_search_mvcc" in told
    page.close()


def test_two_marks_chosen_with_shift_are_compared_older_first(
    address: str, browser: Browser
) -> None:
    page = browser.new_page(viewport=DESKTOP)
    opened(page, address + TREND, 1)

    marks(page).nth(3).click(modifiers=["Shift"])
    said = page.locator("[data-picked]").inner_text()
    marks(page).nth(1).click(modifiers=["Shift"])
    page.wait_for_url(f"**/compare?fork=demo&baseline={SHAS[1]}&candidate={SHAS[4]}")

    assert said == "55555555 is chosen; hold Shift and choose what to compare it with."
    assert len(page.context.pages) == 1
    page.close()


def test_a_drag_across_the_trend_looks_closer(address: str, browser: Browser) -> None:
    page = browser.new_page(viewport=DESKTOP)
    opened(page, address + PAGES["long-trend"][0], 1)
    box = page.locator("svg .mark-symbol.role-mark").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2

    page.mouse.move(box["x"] + box["width"] * 0.5, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, middle, steps=4)
    page.mouse.up()
    page.wait_for_url("**/forks/long/workloads/scan?from=*&to=*")
    opened(page, page.url, 1)

    # A tenth of 1,300, each of them drawn now.
    assert 100 < marks(page).count() < 160
    page.close()


def test_an_order_is_given_by_keyboard_alone(
    address: str, browser: Browser, clerk: PageClerk
) -> None:
    token = clerk.secret("ada", Scope.ACT)
    page = browser.new_page(viewport=PHONE)
    page.goto(f"{address}/alerts/alert-1")

    page.locator("#action").focus()
    page.keyboard.type("note")
    page.keyboard.press("Tab")
    page.keyboard.type("seen on the phone")
    # The folded fields of other orders are one stop.
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type(token)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/alerts/alert-1#timeline")

    assert "seen on the phone" in page.locator("#timeline").inner_text()
    assert token not in page.content()
    page.close()


def test_the_first_stop_of_the_keyboard_skips_to_the_content(
    address: str, browser: Browser
) -> None:
    page = browser.new_page(viewport=DESKTOP)
    page.goto(address)

    page.keyboard.press("Tab")
    skip = page.evaluate("document.activeElement.getBoundingClientRect().top >= 0")
    page.keyboard.press("Enter")

    assert skip
    assert page.evaluate("document.activeElement.id") == "main"
    page.close()


def test_headings_come_in_order(address: str, browser: Browser) -> None:
    page = browser.new_page(viewport=DESKTOP)
    for path, _ in PAGES.values():
        page.goto(address + path)
        levels = page.eval_on_selector_all(
            "h1, h2, h3", "found => found.map(one => Number(one.tagName[1]))"
        )
        assert levels[0] == 1
        assert levels.count(1) == 1
        steps = [after - before for before, after in pairwise(levels)]
        assert max(steps, default=0) <= 1, path
    page.close()
