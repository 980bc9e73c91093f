"""The pages as people use them in Chromium: links, orders, comparisons, among hostile words."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from sqlalchemy import update

from bisects.document import CommitState
from service.core.model import AlertState, CommitOutcome
from service.core.tokens import Scope
from service.core.weeks import zone_of
from service.flows.digest import DigestSteps
from service.store import alerts
from service.store.bisect_tables import BisectRow
from service.store.database import Database
from service.store.migrate import upgrade
from service.web.bisect_pages import bisect_pages_router
from service.web.compare_pages import compare_pages_router
from service.web.digest_pages import digests_router
from tests.fakes import axe_core
from tests.fakes.chromium import DESKTOP, PHONE, chromium
from tests.fakes.loopback import Loopback
from tests.fakes.memory_fork import StillClock
from tests.fakes.page_clerk import PageClerk
from tests.fakes.run_documents import AT, a_run, sha
from tests.fakes.stored_bisects import BisectCaller
from tests.fakes.stored_fork import SHAS, a_fork, a_stored_run, a_week, finished, git_commit
from tests.fakes.stored_weeks import MONDAY, SAME, SLOWER, WEEK, Weeks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

    from service.core.digests import StoredDigest

pytestmark = pytest.mark.browser

EVIL = "</script><script>alert(1)</script><img src=x onerror='alert(2)'> {{ 7*7 }} \u202e"
EVIL_FORK, EVIL_BRANCH = "<b>evil<|b>\"'", "main<i onmouseover=alert(3)>"
EVIL_WORKLOAD = "scan<img src=x onerror=alert(4)>"
ASKED = "</p><script>alert(5)</script>"
ALERT = "/alerts/alert-1"
COMPARE = f"/compare?fork=demo&baseline={SHAS[3]}&candidate={SHAS[4]}"
RELEASES = f"/releases?fork=demo&refs={SHAS[0]},{SHAS[4]}"


class NowhereDigests:
    """A sink that nobody reads."""

    def send_digest(self, digest: StoredDigest) -> str:
        return f"nowhere:{digest.week.name}"


def fill(database: Database) -> str:
    """Store a week, a fork of hostile words, a suspicion, a bisect, a digest; return the bisect."""
    with database.writing() as session:
        a_week(session)
        unsure = Weeks(session, fork="unsure")
        unsure.commit(MONDAY, found={"scan": SAME})
        unsure.commit(MONDAY, found={"scan": SLOWER}, scan=1.5)
        commit = git_commit(sha("1"), subject=EVIL, author=EVIL)
        a_fork(session, commit, name=EVIL_FORK, branch=EVIL_BRANCH)
        story = a_run().of(EVIL_FORK, branch=EVIL_BRANCH).called("run-evil")
        judged = {EVIL_WORKLOAD: SAME}
        story = story.on(sha("1"), subject=EVIL).with_samples(EVIL_WORKLOAD, [[2.0], [2.1]])
        a_stored_run(session, story, judged)
        finished(session, sha("1"), CommitOutcome.NO_CHANGE, EVIL, fork=EVIL_FORK)
    caller = BisectCaller(database)
    for subject in ("Import", f"Breaks {EVIL}", "Slower"):
        caller.fork.push(subject)
    bisect = caller.ask()
    caller.observe(bisect, 1, state=CommitState.BROKEN, failure=EVIL)
    caller.observe(bisect, 2, [-0.1, -0.101, -0.099])
    with database.writing() as session:
        session.execute(update(BisectRow).values(alert="alert-1"))
    steps = DigestSteps(
        database=database,
        clock=StillClock(MONDAY + WEEK + timedelta(hours=8)),
        sink=NowhereDigests(),
        zone=zone_of("UTC"),
        base_url="http://fw",
    )
    for fork, week in steps.due():
        steps.write(fork, week)
    return bisect.id


@pytest.fixture(scope="module")
def clerk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageClerk]:
    url = f"sqlite:///{tmp_path_factory.mktemp('store') / 'service.sqlite'}"
    upgrade(url)
    database = Database(url)
    found = PageClerk(database, clock=StillClock(AT + timedelta(days=2)))
    found.app.state.bisect = fill(database)
    for router in (
        digests_router(database),
        compare_pages_router(database),
        bisect_pages_router(database),
    ):
        found.app.include_router(router)
    yield found
    database.close()


@pytest.fixture(scope="module")
def address(clerk: PageClerk) -> Iterator[str]:
    with Loopback(clerk.app) as running:
        yield running.url


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    opened = browser.new_page(viewport=DESKTOP)
    yield opened
    opened.close()


def settled(page: Page) -> None:
    """Wait until every chart in sight is drawn."""
    page.wait_for_function(
        "() => [...document.querySelectorAll('[data-chart]')]"
        ".every(one => !one.checkVisibility() || one.dataset.state === 'drawn')",
        timeout=60_000,
    )


def test_every_page_is_a_click_away_and_knows_where_it_is(page: Page, address: str) -> None:
    page.goto(address)
    names = page.locator("nav a").all_inner_texts()

    for name in names:
        page.locator("nav").get_by_role("link", name=name, exact=True).click()
        assert page.locator("nav a[aria-current=page]").inner_text() == name
        assert page.locator("h1").count() == 1
    page.get_by_role("link", name="forkwatch", exact=True).click()

    assert page.url == f"{address}/"
    assert names == ["Overview", "Bisects", "Compare", "Releases", "Digests", "Hosts", "Precision"]


def test_from_what_is_wrong_to_why_and_back(page: Page, address: str) -> None:
    page.goto(address)
    page.locator("ul.alerts a.said").click()
    assert page.locator("h1").inner_text() == "demo/main: scan 9.1\u00a0% slower at 55555555"

    page.get_by_role("link", name="compare", exact=True).click()
    settled(page)
    assert page.get_by_role("heading", name="Measured as a pair").is_visible()

    page.get_by_role("link", name="55555555", exact=True).first.click()
    assert "Check the record format" in page.locator("h1").inner_text()
    page.go_back()
    page.go_back()
    page.go_back()
    assert page.url == f"{address}/"


def test_two_commits_are_compared_by_lists(page: Page, address: str) -> None:
    page.goto(f"{address}/forks/demo/workloads/scan")

    page.locator("select[name=baseline]").select_option(SHAS[1])
    page.locator("select[name=candidate]").select_option(SHAS[4])
    page.get_by_role("button", name="Compare").click()

    page.wait_for_url(f"**/compare?fork=demo&baseline={SHAS[1]}&candidate={SHAS[4]}")
    assert page.get_by_role("heading", name="Measured apart").is_visible()


def test_whoever_may_only_read_gives_no_order(page: Page, address: str, clerk: PageClerk) -> None:
    reading = clerk.secret("reader", Scope.READ)
    page.goto(address + ALERT)

    page.locator("#action").select_option("acknowledge")
    page.locator("#note").fill("mine")
    page.locator("#token").fill(reading)
    page.get_by_role("button", name="Do it").click()

    assert "Not done: " in page.get_by_role("alert").inner_text()
    assert page.locator("#note").input_value() == "mine"
    assert page.locator("#token").input_value() == ""
    assert reading not in page.content()
    with clerk.database.reading() as session:
        alert = alerts.find(session, "alert-1")
    assert alert is not None
    assert alert.state is AlertState.CONFIRMED


def test_whoever_may_act_does_and_it_is_written_down(
    page: Page, address: str, clerk: PageClerk
) -> None:
    acting = clerk.secret("grace", Scope.ACT)
    page.goto(address + ALERT)

    page.locator("#action").select_option("acknowledge")
    page.locator("#token").fill(acting)
    page.get_by_role("button", name="Do it").click()
    page.wait_for_url(f"**{ALERT}#timeline")

    assert "token:grace (page) acknowledge" in page.locator("#timeline").inner_text()
    page.goto(address)
    assert "1 with token:grace" in page.locator("main").inner_text()


def test_an_alert_shows_how_far_its_search_has_come(page: Page, address: str) -> None:
    page.goto(address + ALERT)
    settled(page)

    section = page.locator("section", has=page.get_by_role("heading", name="The search for the"))
    assert section.locator("svg").count() == 1
    section.get_by_role("link").first.click()
    assert page.locator("h1").inner_text() == "Which commit changed scan?"


def test_hostile_words_are_words_on_every_page(page: Page, address: str) -> None:
    said: list[str] = []
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("console", lambda message: said.append(message.text))
    fork = quote(EVIL_FORK, safe="")

    for path in (
        "/",
        f"/forks/{fork}/workloads/{quote(EVIL_WORKLOAD, safe='')}",
        f"/forks/{fork}/commits/{sha('1')}",
        "/digests/2026-W45",
        f"/compare?fork={fork}&baseline={sha('1')}&candidate={quote(ASKED, safe='')}",
    ):
        page.goto(address + path)
        settled(page)
        assert page.locator("main img, main i[onmouseover]").count() == 0, path
        assert "\u202e" not in page.content(), path

    page.goto(f"{address}/forks/{fork}/workloads/{quote(EVIL_WORKLOAD, safe='')}")
    settled(page)
    page.locator("svg .mark-symbol.role-mark path").first.hover()
    page.wait_for_selector("#vg-tooltip-element.visible")
    assert "<script>alert(1)</script>" in page.locator("#vg-tooltip-element").inner_text()
    assert EVIL_WORKLOAD in page.locator("h1").inner_text()
    assert EVIL_BRANCH in page.locator("h2").first.inner_text()
    # The browser itself tells the console of a comparison with what is not there.
    assert [line for line in said if "Failed to load resource" not in line] == []


def test_what_nothing_confirmed_is_paler_than_what_a_pair_has_shown(
    page: Page, address: str
) -> None:
    page.goto(address)

    def look(selector: str) -> dict[str, str]:
        return page.locator(selector).first.evaluate(
            "cell => { const style = getComputedStyle(cell);"
            " return { image: style.backgroundImage, colour: style.backgroundColor }; }"
        )

    sure, unsure = look("td.cell.slower:not(.unsure)"), look("td.cell.slower.unsure")
    nothing = "rgba(0, 0, 0, 0)"
    assert (sure["image"], unsure["colour"]) == ("none", nothing)
    assert sure["colour"] != nothing
    assert "gradient" in unsure["image"]
    assert "not confirmed" in page.locator("td.cell.slower.unsure").first.inner_text()


@pytest.mark.parametrize(
    ("view", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")], ids=["desktop-light", "phone-dark"]
)
def test_these_pages_fit_and_break_no_rule(
    browser: Browser, address: str, clerk: PageClerk, view: dict[str, Any], scheme: str
) -> None:
    context = browser.new_context(viewport=view, color_scheme=scheme)
    page = context.new_page()
    broken = {}
    bisect = f"/bisects/{clerk.app.state.bisect}"
    paths = ("/", COMPARE, RELEASES, "/digests/2026-W45", "/bisects", bisect)
    for path in paths:
        page.goto(address + path)
        settled(page)
        overflow = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        found = [*axe_core.violations(page), *(["wider than the screen"] if overflow else [])]
        if found:
            broken[path] = found
    context.close()

    assert broken == {}
