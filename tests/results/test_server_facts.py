from __future__ import annotations

import pytest
from pydantic import ValidationError

from results.document import RunDocument
from results.exact import DIFFERENCES_MAX, CaseDifference, ComparedCase
from results.metric import METRICS, SERVER, SUPPORTING_METRICS
from results.server_facts import Load, ServerLife
from results.slice import SideName
from results.supporting import supporting_samples
from tests.fakes.run_documents import a_run, sha
from tests.fakes.server_facts import MB, a_life, a_load, exact_counters, with_lives, with_loads


def a_document() -> RunDocument:
    document = a_run().with_samples("scan", [[2.0], [2.1]]).build()
    lived = with_lives(
        document,
        (a_life(startup_s=0.5), a_life(leg=1, startup_s=9.0)),
        (a_life(startup_s=0.75),),
    )
    return with_loads(lived, candidate=a_load())


def told(document: RunDocument) -> dict[str, list[float]]:
    """Return the values of the supporting samples by metric."""
    found: dict[str, list[float]] = {}
    for one in supporting_samples(document):
        found.setdefault(one.series.metric, []).append(one.value)
    return found


def test_a_document_with_all_of_it_survives_writing_and_reading() -> None:
    document = a_document().model_copy(update={"exact": exact_counters(gaps=("candidate: no",))})

    assert RunDocument.model_validate_json(document.model_dump_json()) == document


def test_a_document_from_before_can_still_be_read() -> None:
    old = a_run().with_samples("scan", [[2.0]]).build().model_dump(mode="json")
    del old["exact"], old["candidate"]["load"], old["starts"][0]["servers"]
    del old["starts"][0]["slices"][0]["reported"]

    document = RunDocument.model_validate(old)

    assert (document.exact, document.candidate.load) == (None, None)
    assert document.starts[0].servers == ()
    assert document.workloads() == ["scan"]
    assert supporting_samples(document) == ()


def test_a_commit_s_own_job_has_supporting_samples_of_its_first_data_directories() -> None:
    assert told(a_document()) == {
        "startup_s": [0.5, 0.75],
        "shutdown_s": [0.25, 0.25],
        "peak_memory_bytes": [300 * MB, 300 * MB],
        "disk_bytes": [150 * MB, 150 * MB],
        "load_rows_s": [1000.0],
        "index_build_s": [0.5],
    }
    [first, *_] = supporting_samples(a_document())
    assert (first.series.workload, first.start_index) == (SERVER, 0)
    assert set(told(a_document())) == set(SUPPORTING_METRICS)


def test_a_load_by_somebody_else_is_no_sample() -> None:
    foreign = with_loads(a_document(), candidate=a_load(own=False))

    assert not set(told(foreign)) & {"load_rows_s", "index_build_s"}


def test_a_loader_that_tells_nothing_of_indexes_has_no_sample_of_them() -> None:
    silent = with_loads(a_document(), candidate=a_load(rows_s=None, indexes_s=None))

    assert told(silent)["load_rows_s"] == [500.0]
    assert "index_build_s" not in told(silent)


def test_a_library_has_a_disk_and_nothing_else() -> None:
    document = a_run().with_samples("scan", [[2.0]]).build()
    bare = a_life(startup_s=None, shutdown_s=None, peak_rss_bytes=None)

    assert told(with_lives(document, (bare,))) == {"disk_bytes": [150 * MB]}


def test_a_pair_has_none_because_its_servers_do_less_and_less() -> None:
    document = a_run().against(sha("a")).with_samples("scan", [[2.0]]).build()
    lives = tuple(a_life(side) for side in SideName)

    assert supporting_samples(with_lives(document, lives)) == ()


def test_no_gate_can_be_about_a_supporting_metric() -> None:
    # What is judged is taken from METRICS.
    assert not METRICS.keys() & SUPPORTING_METRICS.keys()
    with pytest.raises(KeyError, match="startup_s"):
        a_document().samples("scan", "startup_s")


def test_a_step_that_only_prepares_is_kept_and_not_among_the_workloads() -> None:
    document = a_run().with_samples("scan", [[2.0]]).with_samples("point-query", [[9.0]]).build()
    scan, point = document.starts[0].slices
    start = document.starts[0].model_copy(
        update={"slices": (scan.model_copy(update={"reported": False}), point)}
    )

    found = document.model_copy(update={"starts": (start,)})

    assert found.workloads() == ["point-query"]
    assert len(found.starts[0].slices) == 2


@pytest.mark.parametrize(
    ("model", "bad"),
    [
        (Load, {"load_s": -1.0}),
        (Load, {"disk_bytes": -1}),
        (Load, {"rows": 10**400}),
        (Load, {"surprise": 1}),
        (ServerLife, {"startup_s": float("nan")}),
        (ServerLife, {"leg": -1}),
    ],
)
def test_numbers_that_no_server_gives_are_refused(model, bad) -> None:
    good = a_load() if model is Load else a_life()

    with pytest.raises(ValidationError):
        model.model_validate({**good.model_dump(), **bad})


def test_a_server_cannot_differ_without_end() -> None:
    one = CaseDifference(what="handler_read_key", baseline="1", candidate="2")

    with pytest.raises(ValidationError):
        ComparedCase(name="q", statement="", differences=(one,) * (DIFFERENCES_MAX + 1))
    with pytest.raises(ValidationError):
        ComparedCase(name="q", statement="", counters={"handler_read_key": -1})


def test_a_rate_of_no_time_is_no_rate() -> None:
    assert a_load(rows_s=0.0).rows_per_s is None
    assert a_load(rows_s=5e-324).rows_per_s is None
    assert a_load(rows=0).rows_per_s is None
