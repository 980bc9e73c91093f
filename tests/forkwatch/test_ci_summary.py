"""A summary is shown where there is one, and its trouble is nobody else's."""

from __future__ import annotations

import json
import sys

import pytest

from forkwatch import ci_summary
from forkwatch.ci_settings import CiSettings
from forkwatch.ci_summary import Tone, add_steps, comparison_markdown, hand_over, tell, tone_of
from forkwatch.comparing import conclude
from forkwatch.errors import DoorError
from results.document import Outcome
from results.slice import SideName
from tests.fakes.run_documents import a_run, sha
from tests.fakes.scripted_measurement import PLAN

NOWHERE = CiSettings(github_actions=False, github_step_summary=None, buildkite=False)


@pytest.fixture
def buildkite(tmp_path, monkeypatch):
    """A double of the agent's program, which writes down what it was told; and its file."""
    heard = tmp_path / "heard"
    program = tmp_path / "bin" / "buildkite-agent"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, sys\n"
        "words = sys.argv[1:]\n"
        "body = open(words[2]).read() if words[0] == 'pipeline' else sys.stdin.read()\n"
        f"json.dump([words, body], open({str(heard)!r}, 'w'))\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return heard


def a_pair(ratio=1.0, workload="scan"):
    story = a_run().on(sha("c")).against(sha("b"))
    for side, level in ((SideName.BASELINE, 100.0), (SideName.CANDIDATE, 100.0 * ratio)):
        rows = [[level * noise] * 2 for noise in (1.0, 1.001, 0.999, 1.0005)]
        story = story.with_samples(workload, rows, side=side)
    return story.build()


def test_a_summary_has_the_sentence_the_table_and_the_rest_folded_away():
    text = comparison_markdown(conclude(a_pair(0.8), PLAN))

    assert text.startswith("**scan is 20.0 % slower")
    assert "| scan |" in text
    assert "<details><summary>Cost per operation</summary>" in text


def test_a_commit_that_does_not_build_shows_the_end_of_its_log():
    failed = a_run().against(sha("b"))
    failed = failed.that(
        Outcome.BUILD_FAILED, stage="build", message="cc failed", log="undeclared ``` name"
    )
    text = comparison_markdown(conclude(failed.build(), PLAN))

    assert "does not build" in text
    assert "````text\nundeclared ``` name\n````" in text


def test_names_cannot_make_markup():
    text = comparison_markdown(conclude(a_pair(0.8, workload="<img src=x>@all"), PLAN))

    assert "<img" not in text
    assert "@all" not in text


@pytest.mark.parametrize(
    ("status", "tone"),
    [(0, Tone.SUCCESS), (1, Tone.ERROR), (2, Tone.ERROR), (3, Tone.WARNING)],
)
def test_the_tone_is_that_of_the_exit_status(status, tone):
    assert tone_of(status) is tone


def test_on_github_it_is_added_to_the_summary_of_the_step(tmp_path):
    path = tmp_path / "summary"
    settings = CiSettings(github_actions=True, github_step_summary=path)
    tell("first", tone=Tone.ERROR, context="x", settings=settings)
    tell("second", tone=Tone.ERROR, context="x", settings=settings)

    assert path.read_text() == "first\nsecond\n"


def test_what_does_not_fit_is_said_and_not_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(ci_summary, "SUMMARY_BYTES_MAX", 20)
    path = tmp_path / "summary"
    path.write_text("x" * 15)
    tell("too long", tone=Tone.INFO, context="x", settings=CiSettings(github_step_summary=path))

    assert path.read_text() == "x" * 15
    assert "no summary was written" in capsys.readouterr().err


def test_on_buildkite_it_is_an_annotation_however_long(buildkite):
    text = "é" * 300_000
    tell(text, tone=Tone.WARNING, context="forkwatch-small", settings=CiSettings(buildkite=True))
    words, body = json.loads(buildkite.read_text())

    assert words == ["annotate", "--style", "warning", "--context", "forkwatch-small"]
    assert body == text


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (None, "not in PATH"),
        ("#!/bin/sh\necho refused >&2\nexit 1\n", "refused"),
        ("#!/bin/sh\nexit 1\n", "said nothing"),
    ],
)
def test_an_annotation_that_cannot_be_made_is_a_line_and_no_more(
    tmp_path, monkeypatch, capsys, program, said
):
    if program:
        (tmp_path / "buildkite-agent").write_text(program)
        (tmp_path / "buildkite-agent").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    tell("text", tone=Tone.INFO, context="x", settings=CiSettings(buildkite=True))

    told = capsys.readouterr()
    assert said in told.err
    assert told.out == ""


def test_a_summary_that_cannot_be_written_is_a_line_and_no_more(tmp_path, capsys):
    settings = CiSettings(github_step_summary=tmp_path / "no" / "such")
    tell("text", tone=Tone.INFO, context="x", settings=settings)

    assert "No such file" in capsys.readouterr().err.replace("\n", " ")


def test_at_home_it_says_that_nobody_shows_it(capsys):
    tell("text", tone=Tone.INFO, context="x", settings=NOWHERE)

    assert "neither GitHub Actions nor Buildkite" in capsys.readouterr().err.replace("\n", " ")


def test_outputs_of_a_step_are_lines_of_a_file(tmp_path):
    path = tmp_path / "output"
    path.write_text("before=1\n")
    settings = CiSettings(github_output=path)
    hand_over({"suspicious": "true", "baseline": sha("a")}, settings=settings)
    hand_over({"x": "y"}, settings=NOWHERE.model_copy(update={"github_output": None}))

    assert path.read_text() == f"before=1\nsuspicious=true\nbaseline={sha('a')}\n"


def test_outputs_that_cannot_be_written_are_an_error(tmp_path):
    with pytest.raises(DoorError, match="cannot be written"):
        hand_over({"a": "b"}, settings=CiSettings(github_output=tmp_path / "no" / "such"))


def test_further_steps_are_uploaded(buildkite):
    add_steps('{"steps": []}')
    words, body = json.loads(buildkite.read_text())

    assert words[:2] == ["pipeline", "upload"]
    assert body == '{"steps": []}'


def test_steps_that_cannot_be_added_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(DoorError, match="not in PATH"):
        add_steps("{}")
    program = tmp_path / "buildkite-agent"
    program.write_text("#!/bin/sh\necho no such build >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(DoorError, match="no such build"):
        add_steps("{}")


def test_settings_are_what_the_systems_say(monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "/x/summary")
    monkeypatch.setenv("GITHUB_OUTPUT", "")
    monkeypatch.setenv("BUILDKITE", "true")
    found = CiSettings()

    assert (found.github_actions, found.buildkite) == (True, True)
    assert str(found.github_step_summary) == "/x/summary"
    assert found.github_output is None
