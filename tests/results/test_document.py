from __future__ import annotations

import pytest
from pydantic import ValidationError

from results.document import RunDocument
from results.metric import INSTRUCTIONS, METRICS, SERVER_CPU, THROUGHPUT
from results.slice import SideName, SliceState
from tests.fakes.run_documents import a_run


def changed(document: RunDocument, **values: object) -> RunDocument:
    return RunDocument.model_validate({**document.model_dump(), **values})


@pytest.fixture
def document() -> RunDocument:
    return a_run().with_samples("scan", [[50.0, 51.0], [52.0, 53.0]]).build()


def test_a_document_survives_writing_and_reading(document):
    assert RunDocument.model_validate_json(document.model_dump_json()) == document


def test_samples_are_starts_by_slices(document):
    assert document.samples("scan", THROUGHPUT.name) == [[50.0, 51.0], [52.0, 53.0]]
    assert document.samples("scan", THROUGHPUT.name, SideName.BASELINE) == [[], []]
    # Its slices were measured without counters of the processor.
    for metric in METRICS.keys() - {INSTRUCTIONS.name}:
        assert [len(row) for row in document.samples("scan", metric)] == [2, 2]


def test_costs_are_per_operation(document):
    piece = document.starts[0].slices[0]

    assert piece.value(SERVER_CPU.name) == piece.counters.server_cpu_us / piece.operations


@pytest.mark.parametrize("state", [SliceState.DISTURBED, SliceState.FAILED])
def test_a_slice_that_is_not_ok_has_no_sample_but_its_start_stays(document, state):
    first, second = document.starts
    spoilt = tuple(piece.model_copy(update={"state": state}) for piece in first.slices)

    rest = changed(document, starts=(first.model_copy(update={"slices": spoilt}), second))

    assert rest.samples("scan", THROUGHPUT.name) == [[], [52.0, 53.0]]


def test_an_unknown_metric_is_an_error(document):
    with pytest.raises(KeyError, match="throughput_ops_s"):
        document.samples("scan", "speed")


@pytest.mark.parametrize(
    "values",
    [
        {"starts": ()},
        {"outcome": "build-failed"},
        {"version": 2},
        {"surprise": 1},
        {"fork": ""},
        {"fork": "x" * 201},
        {"created_at": "2026-11-03T06:30:00"},
    ],
)
def test_a_document_that_contradicts_itself_is_refused(document, values):
    with pytest.raises(ValidationError):
        changed(document, **values)


def test_slices_of_a_baseline_need_its_commit():
    pair = (
        a_run()
        .against("a" * 40)
        .with_samples("scan", [[50.0]], side=SideName.BASELINE)
        .with_samples("scan", [[50.0]])
        .build()
    )

    with pytest.raises(ValidationError, match="baseline's commit"):
        changed(pair, baseline=None)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_numbers_that_no_benchmark_gives_are_refused(document, value):
    text = document.model_dump()
    text["starts"][0]["slices"][0]["throughput_ops_s"] = value

    with pytest.raises(ValidationError):
        RunDocument.model_validate(text)


def test_whatever_moves_results_starts_a_new_series(document):
    here = document.series("scan", THROUGHPUT.name)
    others = [
        document.series("point-query", THROUGHPUT.name),
        document.series("scan", SERVER_CPU.name),
        changed(document, branch="other").series("scan", THROUGHPUT.name),
        changed(document, variant="rel_lto").series("scan", THROUGHPUT.name),
        changed(document, config="ps0").series("scan", THROUGHPUT.name),
        changed(document, placement={"mode": "disjoint"}).series("scan", THROUGHPUT.name),
        changed(document, dataset={**document.dataset.model_dump(), "digest": "e" * 64}).series(
            "scan", THROUGHPUT.name
        ),
    ]

    assert len({key.id for key in (here, *others)}) == 8
    assert document.series("scan", THROUGHPUT.name) == here
