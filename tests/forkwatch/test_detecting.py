"""`forkwatch detect`: what it prints about a file, as text and as JSON, and its exit status."""

from __future__ import annotations

import io
import json
import math
import re

import numpy as np
import pytest

from detectors.synthetic import Gaussian, Ramp, history
from forkwatch.csv_sheet import SeriesFileError
from forkwatch.detecting import detect

NOISE = Gaussian(sd=0.01)


def generator() -> np.random.Generator:
    return np.random.default_rng(20260902)


def a_file(path, columns: dict[str, list[object]], delimiter: str = ","):
    lines = [delimiter.join(columns)]
    lines += [delimiter.join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def stepped(tmp_path):
    """100 commits; throughput falls by 8 % at c60, latency is noise."""
    rng = generator()
    qps = history(rng, 100, noise=NOISE, steps={60: math.log(0.92)})
    ms = history(rng, 100, noise=NOISE, level=3.0)
    names = [f"c{number}" for number in range(100)]
    columns = {"commit": names, "qps": list(qps), "p99 ms": list(ms)}
    return a_file(tmp_path / "stepped.csv", columns)


def document(capsys) -> dict:
    def refuse(word: str) -> float:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(capsys.readouterr().out, parse_constant=refuse)


def test_a_change_is_a_sentence_that_a_person_can_repeat(stepped, capsys):
    status = detect(stepped)

    printed = capsys.readouterr().out
    first = printed.splitlines()[0]
    assert status == 0
    assert re.fullmatch(
        r"qps fell by 7\.\d % \(95 % interval 7\.\d to 8\.\d %\) at commit c60 \(line 62\), "
        r"from about 99\d\.\d to 92\d\.\d\.",
        first,
    )
    assert "p99 ms: no change in 100 points" in printed
    assert "worse" not in printed


def test_with_a_direction_a_change_is_worse_or_better(stepped, capsys):
    assert detect(stepped, column="qps", more_is_better=True) == 0
    assert "which is worse" in capsys.readouterr().out

    assert detect(stepped, column="qps", more_is_better=False) == 0
    assert "which is better" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("column", "more_is_better", "status"),
    [
        ("qps", None, 1),
        ("qps", True, 1),
        ("qps", False, 0),
        ("p99 ms", None, 0),
        (None, True, 1),
    ],
)
def test_the_exit_status_says_whether_there_was_a_change_when_asked(
    stepped, column, more_is_better, status
):
    found = detect(stepped, column=column, more_is_better=more_is_better, fail_on_change=True)

    assert found == status


def test_json_holds_the_change_with_its_place_in_array_and_file(stepped, capsys):
    detect(stepped, more_is_better=True, as_json=True)

    told = document(capsys)
    qps, ms = told["series"]
    (change,) = qps["changes"]
    assert (told["label"], told["warnings"]) == ("commit", [])
    assert (qps["name"], qps["points"], qps["missing"]) == ("qps", 100, 0)
    assert (change["index"], change["line"], change["label"]) == (60, 62, "c60")
    assert change["ratio"] == pytest.approx(0.92, abs=0.01)
    assert change["interval"]["low"] < change["effect"] < change["interval"]["high"]
    assert change["old_level"] == pytest.approx(1000, rel=0.01)
    assert change["new_level"] == pytest.approx(920, rel=0.01)
    assert change["worse"] is True
    assert change["sentence"].startswith("qps fell by")
    assert ms["changes"] == []


def test_a_young_change_is_told_with_what_may_still_move(tmp_path, capsys):
    qps = history(generator(), 66, noise=NOISE, steps={60: -0.08})

    detect(a_file(tmp_path / "young.csv", {"qps": list(qps)}))

    assert "note: qps, line 62: only 6 points" in capsys.readouterr().out


def test_missing_commits_keep_their_place(tmp_path, capsys):
    qps: list[object] = list(history(generator(), 100, noise=NOISE, steps={60: -0.08}))
    for hole in (3, 50, 51, 80):
        qps[hole] = ""
    path = a_file(tmp_path / "holes.csv", {"qps": qps, "n": list(range(1, 101))})

    detect(path, column="qps", as_json=True)

    (series,) = document(capsys)["series"]
    assert series["missing"] == 4
    assert [change["index"] for change in series["changes"]] == [60]


def test_standard_input_is_read_from_a_dash(capsys):
    values = history(generator(), 100, noise=NOISE, steps={60: 0.08})
    text = "\r\n".join(f"{value:.3f}" for value in values)

    assert detect("-", stdin=io.BytesIO(text.encode())) == 0
    assert "column 1 rose by" in capsys.readouterr().out


def test_a_ramp_is_told_as_drift_and_not_as_steps(tmp_path, capsys):
    values = history(generator(), 200, noise=Gaussian(sd=0.005) + Ramp(total=-0.1))
    path = a_file(tmp_path / "ramp.csv", {"qps": list(values), "other": list(values)})

    detect(path, column="qps")

    assert "drift" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["qps\n100\n", "qps\n100\n100\n100\n", "qps\n100\n101\n"])
def test_too_little_to_judge_is_said_and_is_no_failure(tmp_path, capsys, text):
    path = tmp_path / "short.csv"
    path.write_text(text)

    assert detect(str(path), fail_on_change=True) == 0
    assert "note: " in capsys.readouterr().out

    detect(str(path), as_json=True)
    assert document(capsys)["series"][0]["warnings"]


def test_labels_cannot_command_the_terminal(tmp_path, capsys):
    values = history(generator(), 100, noise=NOISE, steps={60: -0.08})
    names = [f"\x1b[31m[red]{number}" for number in range(100)]
    path = a_file(tmp_path / "hostile.csv", {"commit": names, "qps": list(values)})

    detect(path)

    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "[red]60" in printed


@pytest.mark.parametrize("source", ["missing.csv", "."])
def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SeriesFileError, match=f"^{source} cannot be read: "):
        detect(source)
