"""What the builds of both ends tell of their sources reaches the service's search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bisects.document import BisectEnd
from results.slice import SideName
from service.store import bisects
from tests.fakes.bisect_world import BisectWorld, a_bisect_world
from tests.fakes.run_documents import a_run
from tests.fakes.stored_fork import SLOWER, a_stored_run, an_open_alert

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bisects.document import BisectDocument
    from service.core.bisections import Material

ASIDE = (1, 2, 4, 6)
RANGE = (
    "Import",
    "Tool files=tools/dump.c",
    "Tool again files=tools/dump.c,tools/load.c",
    "Quiet files=sql/handler.cc",
    "More of the tool files=tools/load.c",
    "Slower files=sql/row.cc speed=0.9",
    "Tool at last files=tools/dump.c speed=0.9",
    "Later files=sql/handler.cc,tools/dump.c speed=0.9",
)
#: Log ratios about -0.1 with a spread of half a percent.
PAIR = [[1.8, 1.81], [1.79, 1.8], [1.805, 1.8], [1.8, 1.795], [1.81, 1.8], [1.795, 1.8]]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BisectWorld]:
    url = None
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres").new_database()
    with a_bisect_world(tmp_path_factory.mktemp("home"), url) as opened:
        # Nobody touches the last of them, so that it need not be kept.
        opened.runners.outside = ("tools/dump.c", "tools/load.c", "tools/nobody.c")
        yield opened


def material(world: BisectWorld, bisect: str) -> Material:
    with world.database.reading() as session:
        return bisects.material(session, bisect)


def near_zero(found: BisectDocument) -> list[int]:
    return [place for place, one in enumerate(found.commits) if 0 < one.prior < 0.01]


def test_the_first_job_of_both_ends_tells_and_the_search_weighs_by_it(world: BisectWorld) -> None:
    good, bad = world.branch(*RANGE)
    bisect = world.ended(world.ask(good, bad))
    found = world.document(bisect.id)
    asked = [order.candidate for order in world.orders(bisect.id) if order.tell_sources]

    assert asked == [bad]
    assert material(world, bisect.id).outside == ("tools/dump.c", "tools/load.c")
    assert near_zero(found) == list(ASIDE)
    assert (found.end, found.culprits) == (BisectEnd.CULPRIT, (5,))
    measured = {one.commit for one in found.observations}
    assert not measured & set(ASIDE[:2])


def test_another_bisect_of_the_same_ends_knows_it_from_the_start(world: BisectWorld) -> None:
    good, bad = world.branch(*RANGE)
    first = world.ended(world.ask(good, bad))
    again = world.ended(world.ask(good, bad, budget_minutes=60.0))

    assert again.id != first.id
    assert material(world, again.id).outside == ("tools/dump.c", "tools/load.c")
    assert not any(order.tell_sources for order in world.orders(again.id))


def test_what_confirmed_an_alert_tells_it_before_anything_is_measured(world: BisectWorld) -> None:
    good, bad = world.branch(*RANGE, seen=True)
    story = (
        a_run()
        .called(f"run-{bad[:8]}")
        .on(bad, subject=RANGE[-1])
        .against(good)
        .with_samples("scan", PAIR)
        .with_samples("scan", [[2.0, 2.0]] * len(PAIR), side=SideName.BASELINE)
        .telling("tools/dump.c", "tools/load.c")
    )
    with world.database.writing() as session:
        document = a_stored_run(session, story, {"scan": SLOWER})
        an_open_alert(session, document, {"scan": SLOWER}, alert_id="alert-told")
    bisect = world.asks.ask_about("alert-told", actor="token:ada", via="api")[0]

    assert material(world, bisect.id).outside == ("tools/dump.c", "tools/load.c")
    world.ended(bisect.id)
    assert near_zero(world.document(bisect.id)) == list(ASIDE)
    assert not any(order.tell_sources for order in world.orders(bisect.id))


def test_builds_that_tell_nothing_leave_the_weights_as_they_were(
    world: BisectWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.runners, "outside", ())
    good, bad = world.branch(*RANGE)
    bisect = world.ended(world.ask(good, bad))

    assert material(world, bisect.id).outside == ()
    assert near_zero(world.document(bisect.id)) == []
    assert world.document(bisect.id).culprits == (5,)
