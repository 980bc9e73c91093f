from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from fastapi import FastAPI
from playwright.sync_api import sync_playwright

from service.store.database import Database
from service.store.migrate import upgrade
from service.web.pages import missing_page, pages_router
from tests.fakes.loopback import Loopback
from tests.fakes.stored_fork import a_week

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}

PAGES = {
    "overview": ("/", 0),
    "commit": ("/forks/demo/commits/" + "5" * 40, 2),
    "broken-build": ("/forks/demo/commits/" + "7" * 40, 0),
    "trend": ("/forks/demo/workloads/scan", 1),
    "alert": ("/alerts/alert-1", 2),
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the pages of a week on loopback; give their address."""
    url = f"sqlite:///{tmp_path_factory.mktemp('store') / 'service.sqlite'}"
    upgrade(url)
    database = Database(url)
    with database.writing() as session:
        a_week(session)
    app = FastAPI()
    app.include_router(pages_router(database))
    app.add_exception_handler(404, missing_page)
    with Loopback(app) as running:
        yield running.url
    database.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("size", "view"), [("desktop", DESKTOP), ("phone", PHONE)])
def test_pages_draw_their_charts_quietly_and_ask_nobody_else(
    address: str, browser: Browser, tmp_path: Path, size: str, view: dict[str, Any], scheme: str
) -> None:
    context = browser.new_context(viewport=view, color_scheme=scheme)
    page = context.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))

    for name, (path, charts) in PAGES.items():
        page.goto(address + path)
        page.wait_for_function(
            "count => [...document.querySelectorAll('[data-chart]')]"
            ".filter(place => place.checkVisibility())"
            ".filter(place => place.dataset.state === 'drawn')"
            ".filter(place => place.querySelector('svg .mark-symbol path')).length === count",
            arg=charts,
            timeout=15_000,
        )
        page.screenshot(path=tmp_path / f"{name}-{size}-{scheme}.png", full_page=True)
        overflow = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert overflow == 0, f"{name} is wider than the screen"

    context.close()
    assert complaints == []
    assert [url for url in asked if not url.startswith(address)] == []


def test_charts_in_closed_details_are_drawn_when_they_open(address: str, browser: Browser) -> None:
    page = browser.new_page(viewport=DESKTOP)
    page.goto(address + PAGES["commit"][0])

    page.get_by_text("Measured alone").click()

    page.wait_for_function(
        "() => [...document.querySelectorAll('[data-state=drawn] svg')]"
        ".filter(svg => svg.clientWidth > 200).length === 4",
        timeout=15_000,
    )
    page.close()


def test_a_mark_on_the_trend_tells_its_commit_and_opens_it(address: str, browser: Browser) -> None:
    page = browser.new_page(viewport=DESKTOP)
    page.goto(address + "/forks/demo/workloads/scan")
    page.wait_for_selector("[data-state=drawn]")
    marks = page.locator("svg .mark-symbol.role-mark path")
    slow = marks.nth(3)

    slow.hover()
    page.wait_for_selector("#vg-tooltip-element.visible")
    told = page.locator("#vg-tooltip-element").inner_text()
    slow.click()
    page.wait_for_url(f"**/forks/demo/commits/{'5' * 40}")

    assert "regression" in told
    assert "Check the record format in row_search_mvcc" in told
    page.close()
