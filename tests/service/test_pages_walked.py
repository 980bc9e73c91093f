"""Every page of a store that the real flow filled, in Chromium, with hostile words in commits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urljoin, urlsplit

import pytest
from dbos import DBOS

from service.app.compose import compose
from service.core.settings import load_settings
from service.store import commits, migrate
from tests.fakes import axe_core
from tests.fakes.chromium import PHONE, chromium
from tests.fakes.loopback import Loopback
from tests.fakes.memory_fork import MemoryAlerts, MemoryFork, MemoryRunners, StillClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fastapi import FastAPI
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

#: Nothing waits on purpose; this only bounds a hang.
PATIENCE_SECONDS = 120
EVIL = "</script><script>alert(1)</script><img src=x onerror='alert(2)'> {{ 7*7 }} \u202e"
BRANCH = (
    f"Import {EVIL}",
    f"Quiet {EVIL}",
    f"Does not build outcome=build-failed {EVIL}",
    f"Slower scan speed=0.9 {EVIL}",
    f"After it speed=0.9 {EVIL}",
)
#: They have pages and tests of their own.
ELSEWHERE = ("/compare", "/releases", "/bisects", "/digests")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    """Walk a branch to its end with the whole service; give its application."""
    home: Path = tmp_path_factory.mktemp("home")
    settings = load_settings(home=home, host_class="small", poll_seconds=0.05)
    migrate.upgrade(settings.data_url)
    fork = MemoryFork(*BRANCH)
    service = compose(
        settings,
        clock=StillClock(),
        code_host=fork,
        dispatcher=MemoryRunners(fork),
        alerts=MemoryAlerts(),
    )
    try:
        DBOS.launch()
        service.flow.open_queue()
        service.watcher.look()
        deadline = time.monotonic() + PATIENCE_SECONDS
        unfinished = True
        while unfinished:
            assert time.monotonic() < deadline, "the flows did not finish"
            time.sleep(0.05)
            with service.database.reading() as session:
                unfinished = bool(commits.unfinished(session, "demo"))
    finally:
        DBOS.destroy(destroy_registry=True)
    yield service.app
    service.database.close()


def links_of(page: Page, address: str) -> list[str]:
    """Return where a page leads, ours alone."""
    found = page.eval_on_selector_all("a[href]", "all => all.map(one => one.getAttribute('href'))")
    urls = [urldefrag(urljoin(page.url, href)).url for href in found]
    return [
        url
        for url in urls
        if url.startswith(address) and not urlsplit(url).path.startswith(ELSEWHERE)
    ]


@pytest.mark.timeout(300)
def test_all_pages_are_reached_from_the_first_and_none_obeys_a_commit(app: FastAPI) -> None:
    with Loopback(app) as running, chromium() as browser:
        page = browser.new_page(viewport=PHONE)
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        waiting, seen = [f"{running.url}/"], dict.fromkeys([f"{running.url}/"], "")
        while waiting:
            url = waiting.pop()
            answer = page.goto(url)
            assert answer is not None
            assert answer.status == 200, url
            page.wait_for_function(
                "() => [...document.querySelectorAll('[data-chart]')]"
                ".every(one => !one.checkVisibility() || one.dataset.state === 'drawn')"
            )
            seen[url] = page.inner_text("main")
            assert axe_core.violations(page) == [], url
            for link in links_of(page, running.url):
                if link not in seen:
                    seen[link] = ""
                    waiting.append(link)

    assert complaints == []
    paths = sorted({urlsplit(url).path.split("/")[1] for url in seen})
    assert paths == ["", "alerts", "forks", "hosts", "precision"]
    # Five commits, two workloads in four ranges, an alert, a host, and three lists.
    assert len(seen) >= 5 + 2 + 1 + 1 + 3
    first = seen[min(seen, key=len)]
    assert "scan is" in first
    assert "slower" in first
    assert "<script>alert(1)</script>" in first
