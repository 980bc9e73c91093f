"""Comparing stored versions: what names mean, when there is a verdict, and how wide it is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from detectors.pairwise import compare as compare_pairs
from detectors.verdict import Decision
from results.document import Outcome
from results.slice import SideName
from service.core.errors import NotFoundError
from service.flows.comparisons import Comparison, compare
from service.flows.named_runs import ComparisonError
from tests.fakes.given_documents import on_host, stored, with_slices
from tests.fakes.run_documents import a_run, sha
from tests.fakes.stored_fork import (
    SAME,
    SLOWER,
    a_fork,
    a_pair,
    a_stored_run,
    git_commit,
    measured,
)

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from reports.rows import Row
    from results.document import RunDocument
    from service.store.database import Database

A, B, C = (sha(digit) for digit in "abc")


def a_branch(session: Session, *shas: str, name: str = "demo") -> None:
    a_fork(
        session,
        *(
            git_commit(one, parent=shas[place - 1] if place else None, subject=f"Change {place}")
            for place, one in enumerate(shas)
        ),
        name=name,
    )


def scan_of(found: Comparison) -> Row:
    return next(row for row in found.rows if row.workload == "scan")


def width_of(found: Comparison) -> float:
    verdict = scan_of(found).verdict
    assert verdict is not None
    return verdict.change.interval.high - verdict.change.interval.low


def single(run: str, commit: str, *, scan: float = 2.0) -> RunDocument:
    return measured(run, commit, scan=scan, point=63_000.0).build()


def test_two_runs_measured_apart_are_judged_with_the_noise_between_runs(
    database: Database,
) -> None:
    with database.writing() as session:
        a_branch(session, A, B)
        stored(session, single("run-a", A))
        stored(session, single("run-b", B, scan=1.6))
    with database.reading() as session:
        found = compare(session, baseline=A[:8], candidate=B[:8])

    scan = scan_of(found)
    assert not found.is_paired
    assert scan.verdict is not None
    assert scan.verdict.decision is Decision.REGRESSION
    assert scan.ratio == pytest.approx(0.8, abs=0.005)
    assert found.sentence.startswith("scan looks 20.0 % slower")
    assert found.sentence.endswith("; compared with aaaaaaaa")
    # The same starts taken for pairs would be far too sure: they say nothing of two days.
    before, after = (
        document.samples("scan", "throughput_ops_s")
        for document in (found.baseline_document, found.candidate_document)
    )
    paired = compare_pairs(before, after).interval
    assert width_of(found) > 3 * (paired.high - paired.low)
    assert f"forkwatch compare {A[:12]} {B[:12]}" in " ".join(found.notes)


def test_equal_runs_are_no_change_by_luck_only_within_the_interval(database: Database) -> None:
    with database.writing() as session:
        a_branch(session, A, B)
        stored(session, single("run-a", A))
        stored(session, single("run-b", B, scan=2.004))
    with database.reading() as session:
        found = compare(session, baseline=A, candidate=B)

    verdict = scan_of(found).verdict
    assert verdict is not None
    assert not verdict.significant
    assert verdict.change.interval.low < math.log(1.002) < verdict.change.interval.high


def test_a_quiet_history_makes_the_interval_narrower(database: Database) -> None:
    history = [f"{number:040x}" for number in range(1, 10)]
    with database.writing() as session:
        a_branch(session, *history, A, B)
        stored(session, single("run-a", A))
        stored(session, single("run-b", B, scan=1.96))
    with database.reading() as session:
        without = compare(session, baseline=A, candidate=B)
    with database.writing() as session:
        for number, commit in enumerate(history):
            scan = 2.0 * (1 + 0.001 * (-1) ** number)
            stored(session, single(f"run-{number}", commit, scan=scan))
    with database.reading() as session:
        with_history = compare(session, baseline=A, candidate=B)

    assert width_of(with_history) < 0.6 * width_of(without)


def test_what_lies_before_a_confirmed_change_is_no_noise(database: Database) -> None:
    """Half of the history is on another level, and says nothing of this one."""
    history = [f"{number:040x}" for number in range(1, 9)]
    with database.writing() as session:
        a_branch(session, *history, A, B)
        for number, commit in enumerate(history):
            level = 3.0 if number < 4 else 2.0
            stored(session, single(f"run-{number}", commit, scan=level))
        stored(session, single("run-a", A))
        stored(session, single("run-b", B, scan=1.96))
    with database.reading() as session:
        mixed = compare(session, baseline=A, candidate=B)
    with database.writing() as session:
        pair = a_pair("run-4c", history[4], history[3])
        a_stored_run(session, pair, {"scan": SLOWER})
    with database.reading() as session:
        apart = compare(session, baseline=A, candidate=B)

    assert width_of(apart) < width_of(mixed) / 3


def test_a_pair_says_what_people_were_told(database: Database) -> None:
    with database.writing() as session:
        a_branch(session, A, B)
        stored(session, single("run-a", A))
        stored(session, single("run-b", B))
        a_stored_run(session, a_pair("run-bc", B, A), {"scan": SLOWER, "point-query": SAME})
    with database.reading() as session:
        found = compare(session, baseline=A, candidate=B)
        by_run = compare(session, baseline="run-bc", candidate="run-bc")
        mirrored = compare(session, baseline=B, candidate=A)

    assert found.is_paired
    assert {row.workload: row.verdict for row in found.rows} == {
        "scan": SLOWER,
        "point-query": SAME,
    }
    assert found.sentence.startswith("scan is 9.1 % slower (95 %: 8.2 to 10.0) at bbbbbbbb")
    assert by_run.rows == found.rows
    back = scan_of(mirrored)
    assert back.verdict is not None
    assert back.verdict.decision is Decision.IMPROVEMENT
    assert back.ratio == pytest.approx(1 / 0.909, abs=1e-9)
    assert mirrored.baseline.side is SideName.CANDIDATE
    assert back.baseline == scan_of(found).candidate


def test_a_pair_without_verdicts_is_judged_by_looks(database: Database) -> None:
    with database.writing() as session:
        a_branch(session, A, B)
        a_stored_run(session, a_pair("run-bc", B, A))
    with database.reading() as session:
        found = compare(session, baseline=A, candidate=B)

    verdict = scan_of(found).verdict
    assert verdict is not None
    assert verdict.decision is Decision.REGRESSION
    assert verdict.change.method.endswith("every start 1")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"threads": 40}, "client threads (1 and 40)"),
        ({"dataset": None}, "dataset (small:dddddddddddd and none)"),
    ],
)
def test_other_conditions_are_shown_and_not_judged(
    database: Database, changed: dict[str, object], said: str
) -> None:
    with database.writing() as session:
        a_branch(session, A, B)
        stored(session, single("run-a", A))
        stored(session, single("run-b", B, scan=1.0).model_copy(update=changed))
    with database.reading() as session:
        found = compare(session, baseline=A, candidate=B)

    assert [row.verdict for row in found.rows] == [None, None]
    assert scan_of(found).ratio == pytest.approx(0.5)
    assert said in found.sentence


def test_two_host_classes_have_numbers_and_no_verdict(database: Database) -> None:
    with database.writing() as session:
        a_branch(session, A, B)
        stored(session, single("run-a", A))
        stored(session, on_host(single("run-b", B), "large"))
    with database.reading() as session:
        found = compare(session, baseline=A, candidate=B)

    assert found.sentence.startswith("No verdict: they were measured under other conditions")
    assert [(one.what, one.hinders) for one in found.differences] == [("host class", True)]
    assert all(row.baseline and row.candidate for row in found.rows)


def test_builds_are_what_is_compared(database: Database) -> None:
    lto = single("run-b", B, scan=2.4).model_copy(update={"variant": "rel_lto"})
    with database.writing() as session:
        a_branch(session, A, B)
        stored(session, single("run-a", A))
        stored(session, lto)
    with database.reading() as session:
        found = compare(session, baseline="run-a", candidate="run-b")

    assert [(one.what, one.candidate, one.hinders) for one in found.differences] == [
        ("build", "rel_lto", False)
    ]
    verdict = scan_of(found).verdict
    assert verdict is not None
    assert verdict.decision is Decision.IMPROVEMENT


def test_numbers_of_an_unstable_host_are_not_judged(database: Database) -> None:
    shaky = single("run-b", B).model_copy(update={"outcome": Outcome.UNSTABLE})
    with database.writing() as session:
        a_branch(session, A, B)
        stored(session, single("run-a", A))
        stored(session, shaky)
    with database.reading() as session:
        found = compare(session, baseline="run-a", candidate="run-b")
        with pytest.raises(NotFoundError, match=r"no usable run \(unstable\)"):
            compare(session, baseline=A, candidate=B)

    assert "unstable host" in found.sentence
    assert [row.verdict for row in found.rows] == [None, None]


def test_what_only_one_side_has_is_said(database: Database) -> None:
    with database.writing() as session:
        a_branch(session, A, B)
        stored(session, single("run-a", A))
        alone = a_run().called("run-b").on(B).with_samples("scan", [[2.0], [2.01]])
        stored(session, alone.with_samples("insert", [[9.0], [9.1]]).build())
    with database.reading() as session:
        found = compare(session, baseline=A, candidate=B)

    assert [row.workload for row in found.rows] == ["scan", "insert", "point-query"]
    assert "Only the baseline has usable samples of point-query." in found.notes
    assert "Only the candidate has usable samples of insert." in found.notes


def test_a_throughput_of_zero_is_no_level(database: Database) -> None:
    """A stranger's runner may send one; nothing is relative to it."""
    with database.writing() as session:
        a_branch(session, A, B)
        stored(session, with_slices(single("run-a", A), throughput_ops_s=0.0))
        stored(session, single("run-b", B))
    with database.reading() as session:
        found = compare(session, baseline="run-a", candidate="run-b")

    assert [row.ratio for row in found.rows] == [None, None]
    assert found.sentence == "No verdict: no workload has usable samples on both sides"


def test_names_that_say_too_little_are_answered_with_what_they_could_mean(
    database: Database,
) -> None:
    one, two = "abcd" + "1" * 36, "abcd" + "2" * 36
    with database.writing() as session:
        a_branch(session, one, two)
        a_branch(session, one, name="other")
        stored(session, single("run-1", one))
    with database.reading() as session:
        with pytest.raises(ComparisonError, match="abcd2222 of demo, abcd1111 of demo"):
            compare(session, baseline="abcd", candidate="run-1")
        with pytest.raises(ComparisonError, match="abcd1111 of demo, abcd1111 of other"):
            compare(session, baseline="abcd1", candidate="run-1")
        with pytest.raises(NotFoundError, match="has no usable run"):
            compare(session, baseline="abcd1", candidate="run-1", fork="other")


@pytest.mark.parametrize("name", ["", " ", "f" * 40, "run-9", "ab", "a\0b", "x" * 300, "%", "_"])
def test_what_is_not_there_is_not_found(database: Database, name: str) -> None:
    with database.writing() as session:
        a_branch(session, A)
        stored(session, single("run-a", A))
    with database.reading() as session, pytest.raises(NotFoundError):
        compare(session, baseline=name, candidate="run-a")


def test_nothing_is_compared_with_itself(database: Database) -> None:
    with database.writing() as session:
        a_branch(session, A)
        stored(session, single("run-a", A))
    with database.reading() as session:
        with pytest.raises(ComparisonError, match="both names mean the commit aaaaaaaa"):
            compare(session, baseline=A, candidate="aaaa")
        with pytest.raises(ComparisonError, match="measured one commit alone"):
            compare(session, baseline="run-a", candidate="run-a")


def test_an_empty_store_has_nothing_to_compare(database: Database) -> None:
    with database.reading() as session, pytest.raises(NotFoundError):
        compare(session, baseline=A, candidate=B)
