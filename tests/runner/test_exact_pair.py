from __future__ import annotations

from dataclasses import replace

import pytest

from results.document import Placement
from results.slice import SideName
from results.values import TEXT_LENGTH_MAX
from runner import datasets, exact_pair
from runner.bench import Bench
from runner.servers import mysql_family
from tests.runner.conftest import ROWS
from workloads.exact import ExactCase
from workloads.plan import Suite

NAMES = ("scan", "q19-index-condition")


@pytest.fixture
def bench(spec, home, tmp_path):
    """A pair of equal sides."""
    dataset = datasets.describe("small", ROWS, spec)
    with datasets.ready(dataset, ROWS, spec, home) as snapshot:
        yield Bench(
            servers={SideName.BASELINE: spec, SideName.CANDIDATE: spec},
            suite=Suite(workloads=("scan",), exact=NAMES),
            dataset=ROWS,
            snapshots={SideName.BASELINE: snapshot, SideName.CANDIDATE: snapshot},
            scratch=tmp_path / "scratch",
            placement=Placement(mode="unpinned"),
            seed=1,
        )


def with_candidate(bench: Bench, **options: object) -> Bench:
    spec = mysql_family.with_options(bench.servers[SideName.CANDIDATE], options)
    return replace(bench, servers={**bench.servers, SideName.CANDIDATE: spec})


def test_a_lost_condition_is_a_yes_in_one_run(bench):
    lost = with_candidate(bench, optimizer_switch="index_condition_pushdown=off")

    found = exact_pair.compare(lost, NAMES)

    assert found.gaps == ()
    # In the order of the plan, and only what it names.
    assert [case.name for case in found.cases] == list(NAMES)
    scan, q19 = found.cases
    assert scan.differences == ()
    assert scan.counters["handler_read_rnd_next"] == 2001
    by_what = {one.what: one for one in q19.differences}
    assert int(by_what["handler_read_next"].candidate) > 10 * q19.counters["handler_read_next"]
    assert "Using index condition" in by_what["plan"].baseline
    assert "Using index condition" not in by_what["plan"].candidate
    assert found.different == (q19,)
    assert not bench.scratch.exists()


def test_equal_sides_are_a_no_and_a_side_that_does_not_answer_is_a_gap(bench):
    broken = with_candidate(bench, no_such_option=1)

    alike = exact_pair.compare(bench, ["order-by-index"])
    unknown = exact_pair.compare(broken, ["order-by-index"])

    assert (alike.different, alike.gaps) == ((), ())
    assert len(alike.cases[0].counters) > 5
    (gap,) = unknown.gaps
    assert unknown.cases == ()
    assert gap.startswith("candidate: the server ended with ")
    assert "no_such_option" in gap
    assert not bench.scratch.exists()


def test_what_takes_too_long_is_told_and_ends(bench):
    found = exact_pair.compare(bench, NAMES, seconds_max=0.0)

    assert found.cases == ()
    assert found.gaps


def test_what_a_hostile_server_says_stays_in_bounds():
    def case(count: int, text: str) -> ExactCase:
        counters = {f"handler_{number}": count for number in range(500)}
        return ExactCase(
            name="q",
            statement="SELECT 1",
            counters={**counters, "": count, "x" * 300: count, "handler_back": -count},
            plan=(),
            explained=text,
            answer=((text,),),
        )

    found = exact_pair._compared(case(1, "a" * 100_000), case(2, "\x00\x1b[2J" + "b" * 100_000))

    assert len(found.counters) == 200
    assert len(found.differences) == 202
    answer = found.differences[0]
    assert (answer.what, len(answer.baseline)) == ("answer", TEXT_LENGTH_MAX)
    assert not {"\x00", "\x1b"} & set(answer.candidate)
    assert all(count >= 0 for count in found.counters.values())
