from __future__ import annotations

import json
import os

import pytest
from typer.testing import CliRunner

from forkwatch.enrolling import draining, placing
from forkwatch.enrolling.enrolment import DRAINING, Enrolment, System
from forkwatch.enrolling.texts import files_of
from forkwatch.errors import EnrolError
from forkwatch.host_verbs import host
from tests.fakes.service_manager import ManagedHost

URL = "https://github.com/acme/server"
WORDS = ("enroll", "--system", "github", "--url", URL, "--class", "small")


def call(*words):
    return CliRunner().invoke(host, words)


@pytest.fixture(params=[System.GITHUB, System.BUILDKITE])
def managed(request, tmp_path):
    """A host that is enrolled, and what it is enrolled as."""
    answers = {"url": URL} if request.param is System.GITHUB else {"org": "acme"}
    enrolment = Enrolment(system=request.param, host_class="small", **answers)
    placing.place(tmp_path, enrolment, files_of(enrolment, {}), overwrite=False)
    placed = placing.read(tmp_path)
    return ManagedHost(root=tmp_path, units={placed.unit: "active"}), placed


def test_a_dry_run_shows_every_file_and_writes_nothing():
    done = call(*WORDS)

    assert done.exit_code == 0, done.output
    assert "==> /etc/systemd/system/forkwatch-github-runner.service (644, " in done.output
    assert "config.sh --unattended --ephemeral" in done.output
    assert "left to do:" in done.output
    assert call(*WORDS, "--dry-run").output == done.output


def test_files_are_written_below_a_folder(tmp_path):
    done = call(*WORDS, "--write", str(tmp_path))

    assert done.exit_code == 0, done.output
    assert "wrote /etc/systemd/system/forkwatch-tune.service" in done.output
    assert (tmp_path / "etc" / "systemd" / "system" / "forkwatch-tune.service").exists()
    assert "left as it is" in call(*WORDS, "--write", str(tmp_path)).output


def test_buildkites_files_come_with_the_hooks(tmp_path):
    words = ("enroll", "--system", "buildkite", "--org", "acme", "--class", "small", "--json")

    done = call(*words, "--write", str(tmp_path))

    said = json.loads(done.output)
    assert said["wrote"]
    assert {one["standing"] for one in said["files"]} == {"new"}
    assert "/etc/forkwatch/agent-hooks/pre-exit" in [one["path"] for one in said["files"]]
    assert (tmp_path / "etc/forkwatch/agent-hooks/pre-exit").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--write", "x", "--apply"), "choose one of"),
        (("--dry-run", "--apply"), "choose one of"),
        (("--user", "a b"), "--user"),
    ],
)
def test_misuse_is_said(words, says):
    done = call(*WORDS, *words)

    assert isinstance(done.exception, EnrolError)
    assert says in str(done.exception)


@pytest.mark.parametrize("words", [("drain",), ("drain", "--resume"), ("retire",)])
def test_a_host_that_is_not_enrolled_is_neither_drained_nor_retired(words):
    if os.path.exists("/etc/forkwatch/enrolment.json"):  # noqa: PTH110  this host's own
        pytest.skip("this host is enrolled")

    done = call(*words)

    assert isinstance(done.exception, EnrolError)
    assert "not enrolled" in str(done.exception)


def test_a_drained_host_ends_its_job_and_takes_no_other(managed):
    machine, placed = managed
    machine.runs("run.sh", "Runner.Listener", "Runner.Worker")

    said = draining.drain(machine, placed)

    assert "finished, and no other is taken" in said
    # What the units look for before every job, a reboot later as well.
    assert machine.path(str(DRAINING)).exists()
    unit = next(one for one in placed.files if one.path.name == placed.unit)
    text = placing.below(machine.root, unit.path).read_text()
    assert f"ExecCondition=/usr/bin/test ! -e {DRAINING}\n" in text
    stops = [words for words in machine.told if "stop" in words]
    if placed.system is System.BUILDKITE:
        # The agent finishes its job when it is asked to end, and systemd asks nobody else.
        assert stops == [f"systemctl stop --no-block {placed.unit}"]
        assert "KillMode=mixed\nKillSignal=SIGTERM\n" in text
    else:
        assert stops == []


def test_a_runner_without_a_job_is_stopped_at_once(managed):
    machine, placed = managed
    machine.runs("run.sh", "Runner.Listener")

    draining.drain(machine, placed)

    (told,) = [words for words in machine.told if placed.unit in words]
    assert told.startswith("systemctl stop")


def test_a_host_whose_unit_does_not_run_is_drained_by_the_wish_alone(managed):
    machine, placed = managed
    machine.units.clear()

    assert "does not run" in draining.drain(machine, placed)
    assert machine.told == []
    assert machine.path(str(DRAINING)).exists()


def test_a_drained_host_takes_jobs_again(managed):
    machine, placed = managed
    draining.drain(machine, placed)

    draining.resume(machine, placed)

    assert not machine.path(str(DRAINING)).exists()
    assert machine.told[-1] == f"systemctl start --no-block {placed.unit}"


def test_a_host_that_still_works_is_not_retired(managed):
    machine, placed = managed

    for state in ("active", "activating", "deactivating"):
        machine.units[placed.unit] = state
        with pytest.raises(EnrolError, match=f"is {state}: `forkwatch host drain` first"):
            draining.must_be_stopped(machine, placed)
    machine.units[placed.unit] = "inactive"
    draining.must_be_stopped(machine, placed)


def test_what_the_service_manager_refuses_is_said(managed):
    machine, placed = managed
    machine.refused.add(f"systemctl start --no-block {placed.unit}")

    with pytest.raises(EnrolError, match="failed: Access denied"):
        draining.resume(machine, placed)


def test_retiring_stops_the_units_and_forgets_the_wish(managed):
    machine, placed = managed
    draining.drain(machine, placed)

    draining.before_taking_away(machine, [placed.unit, "forkwatch-tune.service"])
    placing.take_away(machine.root)
    draining.after_taking_away(machine)

    assert machine.told[-2:] == [
        f"systemctl disable --now {placed.unit} forkwatch-tune.service",
        "systemctl daemon-reload",
    ]
    assert not machine.path("/etc/forkwatch").exists()


def test_a_host_without_systemd_cannot_be_enrolled(tmp_path):
    class Bare(ManagedHost):
        def command(self, argv):
            return None

    with pytest.raises(EnrolError, match="a host with systemd"):
        draining.after_placing(Bare(root=tmp_path), ["a.service"])


def test_an_enrolled_host_begins_its_units_with_every_boot(tmp_path):
    machine = ManagedHost(root=tmp_path)

    draining.after_placing(machine, ["a.service", "b.service"])

    assert machine.told == [
        "systemd-sysusers",
        "systemctl daemon-reload",
        "systemctl enable a.service b.service",
    ]
