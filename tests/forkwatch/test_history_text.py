"""A history is lines that a person can read, and that stay small."""

from __future__ import annotations

import json

import pytest

from forkwatch import history_text
from forkwatch.history_text import HistoryTextError, entries_of, read, with_entry
from results.document import Outcome
from results.metric import THROUGHPUT
from results.slice import SideName
from tests.fakes.run_documents import a_run, sha

RUN = a_run().on(sha("c")).with_samples("scan", [[1.0, 3.0, 2.0], [], [4.0, 5.0]]).build()
KEY = RUN.series("scan", THROUGHPUT.name)
ENTRY = entries_of(RUN)[KEY]


def named(run, *, begins=False):
    return ENTRY.model_copy(update={"run": run, "begins": begins})


def test_an_entry_is_the_median_of_each_start_that_has_one():
    assert ENTRY.starts == (2.0, 4.5)
    assert (ENTRY.sha, ENTRY.kind, ENTRY.run, ENTRY.begins) == (sha("c"), "single", "run-1", False)
    assert ENTRY.measured_at == RUN.finished_at


def test_a_pair_stands_for_its_candidate_and_may_begin_a_level():
    story = a_run().on(sha("c")).against(sha("b")).with_samples("scan", [[8.0], [8.0]])
    pair = story.with_samples("scan", [[9.0], [9.0]], side=SideName.BASELINE).build()
    (entry,) = entries_of(pair, changed={"scan"}).values()

    assert (entry.kind, entry.sha, entry.starts, entry.begins) == (
        "paired",
        sha("c"),
        (8.0, 8.0),
        True,
    )


def test_a_run_without_numbers_adds_nothing():
    failed = a_run().that(Outcome.BUILD_FAILED, stage="build", message="no").build()
    unstable = a_run().with_samples("scan", [[1.0], [1.0]])
    unstable = unstable.that(Outcome.UNSTABLE, stage="host", message="noisy").build()

    assert entries_of(failed) == {}
    assert entries_of(unstable) == {}


def test_what_was_written_is_read_again_in_its_order():
    text = ""
    for run in ("one", "two", "three"):
        text = with_entry(text, KEY, named(run), source="x")

    assert [entry.run for entry in read(text, source="x")] == ["one", "two", "three"]
    assert read(text, source="x")[0] == named("one")
    assert json.loads(text.splitlines()[0])["series"]["workload"] == "scan"


def test_the_same_run_is_there_once_and_the_newer_word_counts():
    text = with_entry("", KEY, named("one"), source="x")
    again = with_entry(text, KEY, named("one"), source="x")
    other = with_entry(text, KEY, named("one", begins=True), source="x")

    assert again == text
    assert [entry.begins for entry in read(other, source="x")] == [True]


def test_the_oldest_go_where_a_file_would_be_too_large(monkeypatch):
    monkeypatch.setattr(history_text, "FILE_BYTES_MAX", 1200)
    text = ""
    for number in range(20):
        text = with_entry(text, KEY, named(f"run-{number}"), source="x")

    kept = [entry.run for entry in read(text, source="x")]
    assert len(text.encode()) <= 1200
    assert 2 <= len(kept) < 20
    assert kept == [f"run-{number}" for number in range(20)][-len(kept) :]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("not json", "x, line 3"),
        ('{"run":"a"}', "x, line 3: sha"),
        (ENTRY.model_dump_json().replace("2.0", "-2.0"), "x, line 3: starts.0"),
    ],
)
def test_a_line_that_is_none_is_named(line, said):
    text = with_entry("", KEY, ENTRY, source="x") + line + "\n"

    with pytest.raises(HistoryTextError, match=said):
        read(text, source="x")


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("{}", "not a history"),
        ("workload,value", "not a history"),
        ('{"format":"forkwatch.history","version":2}', "version 2"),
    ],
)
def test_a_file_of_somebody_else_is_left_alone(header, said):
    with pytest.raises(HistoryTextError, match=said):
        with_entry(f"{header}\n", KEY, ENTRY, source="x")
