from __future__ import annotations

import pytest
from rich.console import Console

from bisects.document import BisectEnd
from reports.bisect import bisect_markdown
from reports.bisect_evidence import (
    Evidence,
    culprit_jobs,
    evidence_markdown,
    evidence_of,
    evidence_renderables,
)
from results.document import Outcome
from results.exact import CaseDifference, ComparedCase, ExactCounters
from results.explanation import Explanation, WorkloadExplanation
from results.slice import SideName
from tests.bisects.ranges import Bench, a_search, searched, sha_of
from tests.fakes.run_documents import a_run


@pytest.fixture(scope="module")
def found():
    return searched(a_search(16), Bench(9))


def a_pair(candidate: int = 9, *, times: float = 2.0, good: int = 0, **chosen):
    """A pair in which the candidate reads so many times as many rows for an operation."""
    story = a_run().on(sha_of(candidate)).against(sha_of(good))
    for side in (SideName.BASELINE, SideName.CANDIDATE):
        story = story.with_samples("scan", [[2.0], [2.1]], side=side)
    document = story.build()
    starts = tuple(
        start.model_copy(update={"slices": tuple(counting(piece, times) for piece in start.slices)})
        for start in document.starts
    )
    return document.model_copy(update={"starts": starts, **chosen})


def counting(piece, times: float):
    each = 1000.0 * (times if piece.side is SideName.CANDIDATE else 1.0)
    engine = {"Handler_read_next": each * piece.operations, "Questions": 1.0 * piece.operations}
    counters = piece.counters.model_copy(update={"engine": engine})
    return piece.model_copy(update={"counters": counters})


def test_the_jobs_of_the_culprit_are_named(found) -> None:
    assert set(culprit_jobs(found)) == {"job-9"}
    assert len(culprit_jobs(found)) == sum(one.commit == 9 for one in found.observations)
    assert culprit_jobs(found.model_copy(update={"end": BisectEnd.BUDGET})) == ()


def test_counters_that_differ_are_in_a_table_those_that_do_not_are_not(found) -> None:
    evidence = evidence_of(found, [a_pair(), a_pair()])

    assert evidence is not None
    (line,) = evidence.counters.lines
    assert line.cells == ("scan", "Handler_read_next", "1000", "2000", "2.00")
    assert sha_of(9)[:8] in evidence.counters.title


def test_only_measured_pairs_of_culprit_and_good_end_count(found) -> None:
    others = [
        a_pair(8),
        a_pair(good=3),
        a_pair(outcome=Outcome.UNSTABLE),
        a_run().on(sha_of(9)).with_samples("scan", [[2.0]]).build(),
    ]

    assert evidence_of(found, others) is None
    assert evidence_of(found.model_copy(update={"end": BisectEnd.BUDGET}), [a_pair()]) is None


def test_the_report_has_counters_exact_counters_and_the_explanation(found) -> None:
    exact = ExactCounters(
        cases=(
            ComparedCase(
                name="range",
                statement="SELECT 1",
                differences=(
                    CaseDifference(what="Handler_read_next", baseline="10", candidate="20"),
                ),
            ),
        )
    )
    evidence = evidence_of(found, [a_pair(exact=exact)])
    assert evidence is not None
    explanation = Explanation(workloads=(WorkloadExplanation(workload="scan", gaps=("no luck",)),))
    whole = Evidence(counters=evidence.counters, exact=exact, explanation=explanation)

    text = bisect_markdown(found, evidence=whole)

    assert "What an operation costs beside the good end: 1 counter differs" in text
    assert "Handler\\_read\\_next" in text
    assert "Exact counters: yes, 1 of 1 cases differ: range" in text
    assert "no luck" in text
    assert "forkwatch explain" not in text, "it was explained"
    assert "forkwatch explain" in bisect_markdown(found, evidence=evidence)
    console = Console(width=200)
    with console.capture() as captured:
        for part in evidence_renderables(whole):
            console.print(part)
    assert "Handler_read_next" in captured.get()
    assert "no luck" in captured.get()


def test_equal_counters_are_no_evidence(found) -> None:
    evidence = evidence_of(found, [a_pair(times=1.0)])

    assert evidence is not None
    assert evidence_markdown(evidence) == ""
    assert evidence_renderables(evidence) == []
