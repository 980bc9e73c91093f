from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from forkwatch.host_verbs import host
from runner.host import canary, profile, tuning
from runner.host.machine import Machine
from runner.host.profile import HostProfile, ModeFigure

AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.fixture
def call(tmp_path):
    def called(*words: str):
        return CliRunner().invoke(host, [*words, "--home", str(tmp_path)])

    return called


def a_profile(fingerprint: str) -> HostProfile:
    figure = ModeFigure(
        mode="disjoint",
        kind="single-client",
        measured="ping-pong x 1",
        samples=6,
        disturbed=1,
        mean_ops_s=16180.0,
        cv_percent=0.04,
        cv_low_percent=0.03,
        cv_high_percent=0.09,
    )
    return HostProfile(
        made_at=AT, fingerprint=fingerprint, modes={"single-client": "disjoint"}, figures=(figure,)
    )


def test_show_tells_knobs_tuning_and_profile(call, tmp_path):
    said = call("show").stdout
    assert "aslr" in said
    assert "not calibrated" in said

    profile.write(tmp_path / "host", a_profile("of another kernel"))
    said = call("show").stdout
    assert "* single-client   disjoint       CV   0.04 % (0.03 to 0.09), 16,180/s" in said
    assert "6 x ping-pong x 1, 1 disturbed" in said
    assert "calibrate again" in said

    shown = json.loads(call("show", "--json").stdout)
    assert shown["profile"]["modes"] == {"single-client": "disjoint"}
    assert "aslr" in shown["knobs"]


def test_check_exits_3_exactly_when_something_is_noisy(call):
    done = call("check", "--json")

    shown = json.loads(done.stdout)
    noisy = [check["name"] for check in shown["checks"] if not check["ok"]]
    assert shown["stable"] == (not noisy)
    assert done.exit_code == (3 if noisy else 0)
    assert {"thp", "load", "steal", "disk", "filesystem"} <= {
        check["name"] for check in shown["checks"]
    }


def test_a_dry_run_of_tune_writes_nothing(call, tmp_path):
    done = call("tune", "--dry-run", "--json")

    shown = json.loads(done.stdout)
    assert shown["dry_run"]
    assert len(shown["steps"]) == len(tuning.plan(Machine()))
    assert done.exit_code == 0
    assert not (tmp_path / "host" / tuning.JOURNAL).exists()


def test_reset_without_tune_says_so(call):
    assert call("reset").stdout == "nothing was tuned; nothing to put back\n"
    assert json.loads(call("reset", "--dry-run", "--json").stdout)["entries"] == []


def test_an_unknown_knob_is_misuse(call):
    done = call("tune", "--dry-run", "--knob", "volume")

    assert done.exit_code == 2
    assert "no knob 'volume'" in done.output


def test_a_fingerprint_is_printed_with_what_changed(call, tmp_path):
    first = json.loads(call("fingerprint", "--json").stdout)
    assert (first["since"], first["changes"]) == (None, [])
    kept = tmp_path / "host" / "fingerprints.jsonl"
    kept.write_text(kept.read_text().replace(first["facts"]["kernel"], "5.10.0"))

    said = call("fingerprint").stdout

    assert said.startswith(first["digest"])
    assert f"kernel: 5.10.0 -> {first['facts']['kernel']}" in said


def test_a_changed_host_makes_the_canary_exit_3(call, tmp_path):
    first = call("canary", "--json")
    assert first.exit_code == 0
    readings = json.loads(first.stdout)["readings"]
    assert {one["name"] for one in readings} >= {"cpu", "memory"}

    # A past in which this machine was a thousand times faster.
    (seen,) = canary.history(tmp_path / "host").read()
    faster = {name: value * 1000 for name, value in seen.values.items()}
    past = [seen.model_copy(update={"values": faster})] * 8
    canary.accept(tmp_path / "host", at=AT)
    canary.history(tmp_path / "host").append(past)

    done = call("canary")

    assert done.exit_code == 3
    assert "cpu: " in done.stdout
    assert "CHANGED -" in done.stdout


def test_calibration_of_a_busy_or_quiet_machine(call, tmp_path):
    done = call("calibrate", "--ping-pong", "--rounds", "3", "--seconds", "0.1", "--json")

    found = HostProfile.model_validate_json(done.stdout[done.stdout.index("{\n") :])
    assert {figure.kind for figure in found.figures} == {"single-client", "several-clients", "io"}
    # Whether this machine is quiet now is not ours to say; the two answers belong together.
    if found.too_busy():
        assert done.exit_code == 3
        assert profile.read(tmp_path / "host") is None
    else:
        assert done.exit_code == 0
        assert profile.read(tmp_path / "host") == found
