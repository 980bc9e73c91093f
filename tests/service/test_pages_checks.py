"""The pages about hosts after A/A checks: what they said, what is under way, what is due."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from service.core.aa_checks import AaSchedule
from service.store.database import Database
from service.store.migrate import upgrade
from tests.fakes.memory_fork import MemoryFork
from tests.fakes.visitor import Visitor, visible
from tests.fakes.walked_steps import WalkedSteps

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAY = timedelta(days=1)


class Scene:
    """A service with one measured commit, and somebody who looks at its hosts."""

    def __init__(self, database: Database) -> None:
        self.walked = WalkedSteps(database, MemoryFork("Import"), aa_check_days=7)
        self.walked.walk()
        self.visitor = Visitor(
            database,
            clock=self.walked.clock,
            schedule=AaSchedule(host_class="small", days=self.walked.settings.aa_check_days),
        )

    def check(self, *, speed: float = 1.0) -> None:
        """Have the host class checked, by copies of which one is so fast."""
        self.walked.runners.speed = speed
        self.walked.checks.ask("small", actor="token:ada", via="api")
        self.walked.walk_aside(self.walked.check)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    url = f"sqlite:///{tmp_path / 'service.sqlite'}"
    upgrade(url)
    database = Database(url)
    yield Scene(database)
    database.close()


def test_a_class_that_was_never_checked_is_due(scene: Scene) -> None:
    text = scene.visitor.read("/hosts")

    assert "small 1 host. No A/A check was made yet. The next is due." in text


def test_a_check_that_waits_and_one_that_is_measured_are_told_apart(scene: Scene) -> None:
    check = scene.walked.checks.ask("small", actor="token:ada", via="api")
    scene.walked.clock.advance(2 * DAY)
    waits = scene.visitor.read("/hosts")
    scene.walked.check.dispatch(check.id, 1)

    assert "An A/A check waits until nothing else does, asked for by token:ada 2 days ago." in waits
    assert "An A/A check is under way, asked for by token:ada" in scene.visitor.read("/hosts")


def test_a_quiet_host_shows_its_noise_and_when_it_is_checked_again(scene: Scene) -> None:
    scene.check()
    scene.walked.clock.advance(3 * DAY)
    text = scene.visitor.read("/hosts")
    page = scene.visitor.read("/hosts/bench-1")

    assert "A/A check: done, 3 days ago" in text
    assert re.search(r"fit for 2 of 2 gates, 3 days ago 0\.\d (to 0\.\d )?% 1 measured", text)
    assert "Last A/A check 3 days ago: bench-1 sees losses from" in text
    assert "The next is due 2026-11-10." in text
    assert "last A/A check fit for 2 of 2 gates, 3 days ago" in page
    assert "workload one copy against the other noise between pairs, %" in page
    assert re.search(r" % 5\.0 % 6 fit ", page)
    assert "pooled over 1 check of the host as it is" in page
    assert "asked for by token:ada: bench-1 sees losses from" in page
    scene.walked.clock.advance(4 * DAY)
    assert "fit for the gates of 2 of 2 workloads. The next is due." in scene.visitor.read("/hosts")


def test_a_host_that_makes_differences_up_is_marked(scene: Scene) -> None:
    scene.check()
    scene.walked.clock.advance(DAY)
    scene.check(speed=0.8)
    html = scene.visitor.open("/hosts").text
    page = scene.visitor.open("/hosts/bench-1").text

    assert '<td class="warning">2 of 2 differed, ' in html
    assert "bench-1 called two copies of one artifact different: scan -" in visible(html)
    assert '<td class="warning">called different</td>' in page
    assert "pooled over 2 checks of the host as it is" in visible(page)


def test_a_host_of_another_fingerprint_shows_no_check_of_the_old_one(scene: Scene) -> None:
    scene.check()
    with scene.walked.database.writing() as session:
        host = session.connection().exec_driver_sql("UPDATE hosts SET fingerprint = 'other'")
        assert host.rowcount == 1

    page = scene.visitor.read("/hosts/bench-1")
    assert "one copy against the other" not in page
    # What was said stays.
    assert "asked for by token:ada: bench-1 sees losses from" in page


def test_without_a_schedule_none_is_promised(scene: Scene) -> None:
    bare = Visitor(scene.walked.database, clock=scene.walked.clock)
    scene.check()

    assert "due" not in bare.read("/hosts")
    off = AaSchedule(host_class="small", days=0)
    quiet = Visitor(scene.walked.database, clock=scene.walked.clock, schedule=off)
    assert "None is scheduled." in quiet.read("/hosts")
