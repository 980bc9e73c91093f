"""What `forkwatch host aa` prints, and the timer it offers."""

from __future__ import annotations

import configparser
import json
import shlex
from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from detectors.verdict import Decision
from forkwatch.aa_showing import lines, show, status_of
from forkwatch.aa_timer import timer_text
from forkwatch.host_verbs import host
from results.document import Outcome
from runner.aa import AaCheck
from runner.aa_results import AaResult, Past, past_of
from tests.fakes.run_documents import a_run, sha
from tests.runner.tiny_fork import PLAN

AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def a_result(workload: str = "scan", **chosen) -> AaResult:
    facts = {
        "taken_at": AT,
        "job": "aa-1",
        "fingerprint": "f",
        "placement": "disjoint",
        "fork": "demo",
        "suite": "commit",
        "workload": workload,
        "starts": 10,
        "sd_percent": 1.234,
        "effect_percent": 0.31,
        "low_percent": -0.42,
        "high_percent": 1.04,
        "sees_percent": 2.1,
        "gate_percent": 5.0,
        "verdict": Decision.NO_CHANGE,
    }
    return AaResult.model_validate({**facts, **chosen})


def a_check(*results: AaResult, **chosen) -> AaCheck:
    story = a_run().on(sha("a")).against(sha("b")).with_samples("scan", [[2.0]])
    facts = {
        "document": story.build(),
        "folder": Path("jobs/aa-1"),
        "results": results,
        "past": past_of(results, results),
    }
    return AaCheck(**{**facts, **chosen})


def test_a_fit_host_is_said_to_see_the_gate():
    said = lines(a_check(a_result()))

    assert said[0] == "scan: this host sees 2.1 % with 10 starts; gate 5.0 %: fit"
    assert said[1] == (
        "    one copy against the other +0.3 % (95 %: -0.4 to +1.0); "
        "sd of the log ratio between starts 1.2 %; no-change"
    )
    assert said[-1] == "this host is fit for the gates of all 1 workloads"
    assert status_of(a_check(a_result())) == 0


def test_an_unfit_host_is_told_what_it_takes():
    unfit = a_result("point-query", sees_percent=8.0)
    hopeless = a_result("update-index", sees_percent=60.0, verdict=Decision.INCONCLUSIVE)
    blind = a_result("insert", sees_percent=None, sd_percent=None, low_percent=None)

    said = "\n".join(lines(a_check(a_result(), unfit, hopeless, blind)))

    assert "point-query: this host sees 8.0 % with 10 starts; gate 5.0 %: NOT FIT, about 27" in said
    assert "update-index: this host sees 60.0 % with 10 starts; gate 5.0 %: NOT FIT, more" in said
    assert "insert: this host sees no loss at all" in said
    assert "no interval" in said
    assert "fit for the gates of 1 of 4 workloads" in said
    # It is no error to be told the truth.
    assert status_of(a_check(unfit)) == 0


def test_equals_called_different_make_the_host_unstable(capsys):
    alarm = a_check(a_result(verdict=Decision.REGRESSION))

    assert "ALARM: two copies of one artifact were called regression" in "\n".join(lines(alarm))
    with pytest.raises(typer.Exit) as left:
        show(alarm, as_json=True)
    assert left.value.exit_code == 3
    shown = json.loads(capsys.readouterr().out)
    assert shown["workloads"][0]["verdict"] == "regression"
    assert shown["workloads"][0]["past"]["alarms"] == 1


def test_earlier_checks_are_told():
    past = {"scan": Past(checks=4, alarms=1, since=AT, sd_percent=1.5)}

    said = "\n".join(lines(a_check(a_result(), past=past)))

    assert "1.2 % (1.5 % over 4 checks since 2026-11-21, 1 of them alarmed)" in said


@pytest.mark.parametrize(
    ("outcome", "status"),
    [(Outcome.UNSTABLE, 3), (Outcome.FAILED, 1), (Outcome.BUILD_FAILED, 1)],
)
def test_a_check_without_numbers_says_why(outcome, status):
    story = a_run().that(outcome, stage="host", message="the canary is not as usual")
    found = a_check(document=story.build())

    assert "the canary is not as usual" in lines(found)[-1]
    assert status_of(found) == status


def units(text: str) -> list[configparser.ConfigParser]:
    """Read the two units of a timer's text as systemd would: by sections and keys."""
    found = []
    for part in text.split("# /etc/systemd/system/")[1:]:
        unit = configparser.ConfigParser(interpolation=None, delimiters=("=",))
        unit.optionxform = str
        unit.read_string("#" + part)
        found.append(unit)
    return found


def test_the_timer_runs_this_command_every_week():
    words = ["/opt/my venv/bin/python", "-m", "forkwatch", "--plan", 'odd "50%" $HOME\\x.toml']

    service, timer = units(timer_text(words, user="bench"))

    assert service["Service"]["User"] == "bench"
    command = service["Service"]["ExecStart"]
    assert shlex.split(command.replace("%%", "%").replace("$$", "$")) == words
    assert timer["Timer"]["OnCalendar"].startswith("Sun")
    assert timer["Install"]["WantedBy"] == "timers.target"


def test_the_verb_prints_a_timer_with_absolute_paths_and_measures_nothing(tmp_path, monkeypatch):
    (tmp_path / "forkwatch.toml").write_text(PLAN)
    monkeypatch.chdir(tmp_path)

    done = CliRunner().invoke(host, ["aa", "--timer", "--starts", "5", "--workload", "scan"])

    assert done.exit_code == 0, done.output
    command = units(done.stdout)[0]["Service"]["ExecStart"]
    words = shlex.split(command)
    assert words[1:6] == ["-m", "forkwatch", "host", "aa", "HEAD"]
    assert words[words.index("--repository") + 1] == str(tmp_path)
    assert words[-4:] == ["--starts", "5", "--workload", "scan"]
    assert list(tmp_path.iterdir()) == [tmp_path / "forkwatch.toml"]


def test_a_wrong_plan_is_refused_before_a_timer_is_made(tmp_path):
    (tmp_path / "forkwatch.toml").write_text(PLAN)

    done = CliRunner().invoke(
        host, ["aa", "--timer", "--repository", str(tmp_path), "--suite", "comit"]
    )

    assert done.exit_code != 0
    assert "did you mean 'commit'" in str(done.exception)
