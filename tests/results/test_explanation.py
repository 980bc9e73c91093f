from __future__ import annotations

import pytest
from pydantic import ValidationError

from results.document import RunDocument
from results.explanation import (
    Explanation,
    FunctionCost,
    Instructions,
    Profile,
    WorkloadExplanation,
)
from results.metric import INSTRUCTIONS, METRICS
from tests.fakes.run_documents import a_run


def a_profile(file: str) -> Profile:
    return Profile(
        file=file,
        event="cpu-clock",
        seconds=10,
        baseline_samples=1990,
        candidate_samples=1985,
        baseline_cpu_us_per_op=10.5,
        candidate_cpu_us_per_op=12.25,
    )


def test_a_document_with_an_explanation_survives_writing_and_reading():
    plain = a_run().with_samples("scan", [[50.0], [51.0]]).build()
    found = Explanation(
        workloads=(
            WorkloadExplanation(
                workload="scan",
                instructions=Instructions(
                    operations=2,
                    baseline=1000.0,
                    candidate=1100.0,
                    repeats_within=0.005,
                    own=(FunctionCost(function="memcpy", baseline=-0.5, candidate=99.5),),
                ),
                profile=a_profile("explained/01-scan.svg"),
                seconds=61.5,
            ),
            WorkloadExplanation(workload="update-index", gaps=("left out",)),
        ),
        missing=("no counters of the processor: this is a virtual machine",),
    )

    document = RunDocument.model_validate({**plain.model_dump(), "explanation": found})

    assert RunDocument.model_validate_json(document.model_dump_json()) == document
    assert plain.explanation is None


@pytest.mark.parametrize(
    "file",
    [
        "/etc/passwd",
        "../run.json",
        "explained/../../x.svg",
        ".hidden",
        "a//b",
        "",
        "a b.svg",
        "a\n",
    ],
)
def test_a_flame_graph_lies_below_the_job_s_folder(file):
    with pytest.raises(ValidationError):
        a_profile(file)


@pytest.mark.parametrize(
    ("candidate", "within", "differs"),
    [(1004.0, 0.005, False), (1006.0, 0.005, True), (994.0, 0.005, True), (2000.0, None, None)],
)
def test_sides_differ_by_more_than_equal_software_does(candidate, within, differs):
    found = Instructions(operations=2, baseline=1000.0, candidate=candidate, repeats_within=within)

    assert found.differs is differs


def test_what_code_without_a_name_called_is_not_known():
    cost = FunctionCost(function="(no symbol) in x", baseline=1.0, candidate=4.0)

    assert cost.change == cost.change_with_callees == 3.0


def test_instructions_are_a_metric_where_they_were_counted():
    document = a_run().with_samples("scan", [[50.0, 51.0]]).build()
    piece = document.starts[0].slices[0]

    assert METRICS["instructions_per_op"].direction == -1
    assert document.samples("scan", INSTRUCTIONS.name) == [[]]
    for hardware, expected in (({"instructions": 1500.0}, 3.0), ({"instructions": 0.0}, None)):
        counters = piece.counters.model_copy(update={"hardware": hardware})
        counted = piece.model_copy(update={"counters": counters})
        assert piece.operations == 500
        assert counted.value(INSTRUCTIONS.name) == expected
