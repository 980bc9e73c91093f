from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reports.numbers import short
from service.core.weeks import zone_of
from service.flows.digest import DigestSteps
from service.store.database import Database
from service.store.migrate import upgrade
from service.web.digest_pages import digests_router
from tests.fakes.memory_fork import StillClock
from tests.fakes.stored_weeks import DAY, MONDAY, SAME, SLOWER, WEEK, Weeks, sha_of
from tests.fakes.visitor import Visitor, charts_of, parsed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from service.core.digests import StoredDigest

CALM = {"scan": SAME, "point-query": SAME}
EVIL = "</p><script>x()</script><a href='http://evil'>here</a>"


class NowhereDigests:
    """A sink that nobody reads."""

    def send_digest(self, digest: StoredDigest) -> str:
        return f"nowhere:{digest.week.name}"


@pytest.fixture
def visitor(tmp_path: Path) -> Iterator[Visitor]:
    url = f"sqlite:///{tmp_path / 'service.sqlite'}"
    upgrade(url)
    database = Database(url)
    visitor = Visitor(database)
    visitor.app.include_router(digests_router(database))
    yield visitor
    database.close()


@pytest.fixture
def archive(visitor: Visitor) -> Visitor:
    """A quiet week, and one with an alert, after hostile subjects."""
    with visitor.database.writing() as session:
        weeks = Weeks(session)
        weeks.commit(MONDAY, found=CALM)
        pair = weeks.confirmed(MONDAY + WEEK, {"scan": SLOWER}, subject=EVIL, author=EVIL)
        weeks.alert(pair, {"scan": SLOWER}, MONDAY + WEEK)
    steps = DigestSteps(
        database=visitor.database,
        clock=StillClock(MONDAY + 2 * WEEK + DAY),
        sink=NowhereDigests(),
        zone=zone_of("UTC"),
        base_url="http://test",
    )
    for fork, week in steps.due():
        steps.write(fork, week)
    return visitor


def test_the_archive_lists_weeks_newest_first(archive: Visitor) -> None:
    text = archive.read("/digests")

    newest = text.index("demo, week 2026-W46: 1 commit slower, 1 alert open")
    assert newest < text.index("demo, week 2026-W45: nothing to say")
    assert 'href="/digests/2026-W46"' in archive.open("/digests").text


def test_a_week_says_what_was_sent_and_links_it(archive: Visitor) -> None:
    text = archive.read("/digests/2026-W46")
    html = archive.open("/digests/2026-W46").text

    said = f"scan is 9.1 % slower (95 %: 8.2 to 10.0) at {short(sha_of(2))}"
    assert text.index("Slower") < text.index(said)
    assert "9 to 15 November 2026 (UTC); 1 commit came to main." in text
    assert f'href="/forks/demo/commits/{sha_of(2)}"' in html
    assert 'href="/alerts/alert-demo-2c"' in html


def test_a_loud_week_draws_what_moved_and_a_quiet_one_nothing(archive: Visitor) -> None:
    (spec,) = charts_of(archive.open("/digests/2026-W46").text)

    (rows,) = [values for values in spec["datasets"].values() if "what" in values[0]]
    assert rows[0]["what"] == f"scan at {short(sha_of(2))}"
    assert rows[0]["said"] == "-9.1 % (-10.0 to -8.2)"
    assert charts_of(archive.open("/digests/2026-W45").text) == []


def test_a_quiet_week_is_a_line(archive: Visitor) -> None:
    text = archive.read("/digests/2026-W45")

    assert "nothing to say; 1 commit followed in 4 machine minutes." in text
    assert "Machine time" not in text


def test_an_empty_archive_says_when_there_will_be_something(visitor: Visitor) -> None:
    assert "The first one comes on the Monday" in visitor.read("/digests")


@pytest.mark.parametrize(
    "path", ["/digests/2026-W44", "/digests/2026-W60", "/digests/nothing", "/digests/..%2F.."]
)
def test_a_week_without_a_digest_is_a_page_that_leads_back(archive: Visitor, path: str) -> None:
    response = archive.open(path)

    assert response.status_code == 404
    assert 'href="/"' in response.text


@pytest.mark.parametrize("path", ["/digests", "/digests/2026-W46"])
def test_hostile_words_stay_words_and_pages_are_guarded(archive: Visitor, path: str) -> None:
    response = archive.open(path)

    assert "<script>x()" not in response.text
    scripts = [attributes for tag, attributes in parsed(response.text).tags if tag == "script"]
    # Data of charts, and our own files; nothing of a subject became one.
    assert all("src" in one or one.get("type") == "application/json" for one in scripts)
    assert bool(scripts) is path.endswith("W46")
    assert "script-src 'self'" in response.headers["content-security-policy"]
    for _, attributes in parsed(response.text).tags:
        for name in ("src", "href"):
            assert (attributes.get(name) or "/").startswith(("/", "#"))
