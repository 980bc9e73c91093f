"""What people's files look like, and what each gives: numbers with labels, or one sentence."""

from __future__ import annotations

import math

import pytest

from forkwatch import csv_sheet
from forkwatch.csv_series import COLUMNS_MAX, SeriesFile, read_series
from forkwatch.csv_sheet import SeriesFileError

NAN = math.nan


def one(text: str | bytes, column: str | None = None) -> SeriesFile:
    data = text.encode() if isinstance(text, str) else text
    return read_series(data, column=column)


def values(text: str | bytes, column: str | None = None) -> list[float]:
    (series,) = one(text, column).series
    return list(series.values)


def refusal(text: str | bytes, column: str | None = None) -> str:
    with pytest.raises(SeriesFileError) as caught:
        one(text, column)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    "text",
    [
        "commit,qps\na1,100\nb2,101.5\n",
        "commit;qps\na1;100\nb2;101,5\n",
        "commit\tqps\na1\t100\nb2\t101.5\n",
        "commit|qps\na1|100\nb2|101.5\n",
        'commit,qps\r\n"a1","100"\r\n"b2","101.5"\r\n',
        "commit,qps\ra1,100\rb2,101.5\r",
        "\ufeffcommit,qps\na1,100\nb2,101.5",
        "commit,qps\na1,100\n\nb2,1.015e2\n\n\n",
        'commit,note,qps\na1,"fix a, b",100\nb2,"two\nlines",101.5\n',
        "commit, qps \na1, 100\nb2, 101.5\n",
        "commit,qps\na1,100,\nb2,101.5,,\n",
        "a1,100\nb2,101.5\n",
    ],
)
def test_every_dialect_gives_the_same_numbers_and_labels(text):
    found = one(text)

    assert [list(series.values) for series in found.series] == [[100.0, 101.5]]
    assert found.labels == ("a1", "b2")


def test_utf_16_as_spreadsheets_save_it():
    assert values("commit\tqps\na1\t100\n".encode("utf-16")) == [100.0]


def test_one_column_needs_no_header_and_its_blank_lines_are_missing_commits():
    found = one("100\n101\n\n103\n\n\n")

    assert list(found.series[0].values) == pytest.approx([100.0, 101.0, NAN, 103.0], nan_ok=True)
    assert found.series[0].name == "column 1"
    assert found.lines == (1, 2, 3, 4)
    assert found.labels == ()


@pytest.mark.parametrize("missing", ["", "NA", "n/a", "NaN", "null", "None", "-", "?", " "])
def test_a_missing_value_is_a_commit_that_was_not_measured(missing):
    found = values(f"commit,qps\na,100\nb,{missing}\nc,102\n")

    assert found == pytest.approx([100.0, NAN, 102.0], nan_ok=True)


def test_a_row_that_ends_early_has_missing_cells():
    found = one("commit,qps,ms\na,100,3\nb\nc,102,5\n", "ms")

    assert list(found.series[0].values) == pytest.approx([3.0, NAN, 5.0], nan_ok=True)


def test_lines_are_those_of_the_file_even_after_cells_with_line_breaks():
    found = one('commit,note,qps\na,"x\ny",100\n\nb,z,101\n')

    assert found.lines == (2, 5)


def test_without_a_column_every_measured_one_is_read_and_labels_are_not():
    found = one("time,build,commit,qps,p99_ms\n1700000000,1,a,100,3\n1700000060,2,b,101,4\n")

    assert [series.name for series in found.series] == ["qps", "p99_ms"]
    assert (found.label_name, found.labels) == ("commit", ("a", "b"))


def test_an_empty_column_is_neither_measured_nor_a_label():
    found = one("commit,note,qps\n,,100\n,,101\n")

    assert [series.name for series in found.series] == ["qps"]
    assert found.labels == ()


def test_a_column_that_is_measured_only_later_on_is_read():
    found = one("qps,new\n" + "100,\n" * 1500 + "101,7\n")

    assert [series.values[-1] for series in found.series] == [101.0, 7.0]


def test_a_run_time_that_goes_up_and_down_is_measured_though_it_is_called_time():
    assert values("commit,time\na,3.1\nb,3.0\nc,3.2\n") == [3.1, 3.0, 3.2]


def test_numbered_rows_without_a_header_are_labels():
    found = one("1,100\n2,90\n3,95\n")

    assert list(found.series[0].values) == [100.0, 90.0, 95.0]
    assert found.labels == ("1", "2", "3")


@pytest.mark.parametrize("wanted", ["p99 ms", "P99 MS", "3", " p99 ms "])
def test_a_column_is_chosen_by_name_or_number(wanted):
    assert values("commit,qps,p99 ms\na,100,3\nb,101,4\n", wanted) == [3.0, 4.0]


def test_a_column_that_would_be_a_label_can_be_chosen():
    found = one("build,qps\n1,100\n2,101\n", "build")

    assert [series.name for series in found.series] == ["build"]
    assert found.labels == ()


def test_columns_of_one_name_are_told_apart():
    found = one("ms,ms\n1,2\n1,3\n")

    assert [series.name for series in found.series] == ["ms (column 1)", "ms (column 2)"]


def test_a_column_that_is_no_measurement_is_left_out_with_a_warning_if_others_are():
    found = one("commit,qps,errors\na,100,0\nb,101,2\n")

    assert [series.name for series in found.series] == ["qps"]
    assert len(found.warnings) == 1
    assert "left out: line 2, column 'errors'" in found.warnings[0]


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("", None, ["empty"]),
        (" \n \r\n", None, ["empty"]),
        ("\ufeff", None, ["no cell"]),
        ('""\n', None, ["no cell"]),
        ("commit,qps\n", None, ["only a header", "'qps'"]),
        ("commit,note\na,x\nb,y\n", None, ["no column of numbers", "'commit', 'note'"]),
        ("commit,qps\na,1\nb,fast\nc,2\n", None, ["line 3", "'qps'", "'fast'", "empty"]),
        ("commit,qps\na,1\nb,2 ms\nc,2\n", "qps", ["line 3", "'2 ms' is not a number"]),
        ("commit,qps\na,1\nb,1_000\n", "qps", ["line 3", "'1_000' is not a number"]),
        ('commit,qps\na,1\nb,"1,000"\n', "qps", ["line 3", "'1,000' is not a number"]),
        ("commit,qps\na,1\nb,inf\n", "qps", ["line 3", "infinite", "leave the cell empty"]),
        ("commit,qps\na,1\nb,1e999\n", "qps", ["line 3", "infinite"]),
        ("commit,qps\na,1\nb,0\n", "qps", ["line 3", "0 is not above zero", "ratio"]),
        ("commit,qps\na,1\nb,-2.5\n", None, ["line 3", "-2.5 is not above zero"]),
        ("commit,qps\na,NA\nb,\n", "qps", ["'qps' holds no number"]),
        ("commit,qps\na,1\nb,2,3\n", None, ["line 3", "3 cells", "has 2", "quotes"]),
        ("commit,qps\na,1\n", "qsp", ["no column 'qsp'", "'commit', 'qps'", "did you mean 'qps'"]),
        ("commit,qps\na,1\n", "7", ["no column '7'"]),
        ('commit,qps\na,"1\nb,2\n', None, ["line 2", "cannot be read as CSV"]),
        (b"commit,qps\na,\xff1\n", None, ["line 2", "UTF-8"]),
        (b"commit,qps\na,1\x00\n", "qps", ["line 2"]),
    ],
)
def test_what_cannot_be_a_measurement_is_refused_with_its_line(text, column, words):
    message = refusal(text, column)

    assert [word for word in words if word not in message] == []


def test_more_columns_than_anyone_reads_have_to_be_chosen_from():
    count = COLUMNS_MAX + 1
    header = ",".join(f"m{n}" for n in range(count))
    row = ",".join("2" for _ in range(count))

    assert "--column" in refusal(f"{header}\n{row}\n")
    assert values(f"{header}\n{row}\n", "m50") == [2.0]


def test_a_file_too_large_to_hold_is_refused_with_the_limit(monkeypatch):
    monkeypatch.setattr(csv_sheet, "TEXT_BYTES_MAX", 2**20)

    assert "at most 1 are read" in refusal(b"100\n" * 2**19)


def test_a_million_rows_are_read():
    found = one("qps\n" + "100.5\n101.5\n" * 500_000)

    assert len(found.series[0].values) == 1_000_000
    assert found.lines[-1] == 1_000_001
