from __future__ import annotations

import pytest

from runner.errors import HostError
from runner.host import tuning
from runner.host.checks import knob_check, quiet_checks
from runner.host.knobs import KNOBS
from runner.host.machine import Machine
from tests.fakes.host_tree import (
    BOOST,
    BOOT,
    CPU,
    SMALL_GUEST,
    SMT,
    SWAPPINESS,
    THP,
    FakeMachine,
    a_machine,
    a_noisy_server,
)

GOVERNOR = f"{CPU}/cpu3/cpufreq/scaling_governor"


@pytest.fixture
def machine(tmp_path) -> FakeMachine:
    return a_noisy_server(tmp_path / "host")


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "home" / "host"


def everything(machine: FakeMachine) -> dict[str, str]:
    """Return every file of the machine, and the units."""
    files = {
        str(path.relative_to(machine.root)): path.read_text()
        for path in machine.root.rglob("*")
        if path.is_file()
    }
    return {name: text.strip() for name, text in files.items()} | machine.units


def test_a_dry_run_names_every_change_and_makes_none(machine):
    before = everything(machine)

    steps = tuning.plan(machine)

    assert everything(machine) == before
    assert {step.knob for step in steps} == {knob.name for knob in KNOBS}
    by_place = {step.place: (step.now, step.wanted) for step in steps}
    assert by_place[GOVERNOR] == ("powersave", "performance")
    assert by_place[THP] == ("always", "madvise")
    assert by_place["apt-daily.timer"] == ("active", "inactive")
    assert "fstrim.timer" not in by_place
    # Only states that take long to leave.
    assert f"{CPU}/cpu0/cpuidle/state2/disable" in by_place
    assert f"{CPU}/cpu0/cpuidle/state1/disable" not in by_place


def test_tuning_satisfies_every_check_and_reset_restores_every_byte(machine, journal):
    before = everything(machine)
    assert not any(knob_check(knob, machine).ok for knob in KNOBS)

    steps = tuning.tune(machine, journal)

    assert not any(step.fault for step in steps)
    assert all(knob_check(knob, machine).ok for knob in KNOBS)
    assert machine.text(THP) == "always [madvise] never"

    restored = tuning.reset(machine, journal)

    assert everything(machine) == before
    assert all(one.ok and one.said == "restored" for one in restored)
    assert tuning.recorded(journal) == []


def test_smt_is_switched_last_and_restored_first(machine, journal):
    tuning.tune(machine, journal)
    assert machine.written[-1] == SMT
    machine.written.clear()

    tuning.reset(machine, journal)

    # Its processors have to be back before their governors can be.
    assert machine.written[0] == SMT


def test_tuned_twice_keeps_the_first_values(machine, journal):
    before = everything(machine)
    tuning.tune(machine, journal)
    assert tuning.tune(machine, journal) == []
    # Somebody turns one knob back to yet another value; a second tuning sets it again.
    machine.write(SWAPPINESS, "30")
    assert [step.now for step in tuning.tune(machine, journal)] == ["30"]

    tuning.reset(machine, journal)

    assert everything(machine) == before


@pytest.mark.parametrize("at", [GOVERNOR, BOOST, THP, SWAPPINESS, SMT])
def test_a_tuning_killed_at_any_write_can_be_undone(machine, journal, at):
    before = everything(machine)
    machine.deadly.add(at)
    with pytest.raises(KeyboardInterrupt):
        tuning.tune(machine, journal)
    assert everything(machine) != before or at == GOVERNOR
    machine.deadly.clear()

    restored = tuning.reset(machine, journal)

    assert everything(machine) == before
    assert all(one.ok for one in restored)
    assert "already as it was" in {one.said for one in restored}


def test_the_journal_is_there_before_the_first_change(machine, journal):
    first = tuning.plan(machine)[0].place
    machine.deadly.add(first)
    with pytest.raises(KeyboardInterrupt):
        tuning.tune(machine, journal)

    assert machine.written == []
    assert len(tuning.recorded(journal)) == len(tuning.plan(machine))


def test_a_reset_killed_half_way_goes_on(machine, journal):
    before = everything(machine)
    tuning.tune(machine, journal)
    machine.deadly.add(THP)
    with pytest.raises(KeyboardInterrupt):
        tuning.reset(machine, journal)
    machine.deadly.clear()

    tuning.reset(machine, journal)

    assert everything(machine) == before


def test_what_refuses_is_named_and_kept_for_the_next_reset(machine, journal):
    before = everything(machine)
    tuning.tune(machine, journal)
    machine.refusing.update({BOOST, "cron.service"})
    machine.stubborn.add(SWAPPINESS)

    failed = {one.place: one.said for one in tuning.reset(machine, journal) if not one.ok}

    assert failed == {
        BOOST: "not restored: Operation not permitted",
        "cron.service": "not restored: Access denied",
        SWAPPINESS: "not restored: it still is 1",
    }
    assert [entry.place for entry in tuning.recorded(journal)] == [
        BOOST,
        SWAPPINESS,
        "cron.service",
    ]
    machine.refusing.clear()
    machine.stubborn.clear()
    assert all(one.ok for one in tuning.reset(machine, journal))
    assert everything(machine) == before


def test_a_knob_that_refuses_does_not_stop_the_others(machine, journal):
    machine.refusing.add(BOOST)
    machine.stubborn.add(SMT)

    faults = {step.place: step.fault for step in tuning.tune(machine, journal) if step.fault}

    assert faults == {BOOST: "Operation not permitted", SMT: "it still is on"}
    assert machine.text(SWAPPINESS) == "1"


def test_after_a_reboot_only_what_is_still_tuned_is_restored(machine, journal):
    tuning.tune(machine, journal)
    # The new kernel has its own values: the old one, a new one, and one file less.
    machine.write(BOOT, "second-boot")
    machine.write(THP, "[always] madvise never")
    machine.write(SWAPPINESS, "10")
    machine.path(BOOST).unlink()

    said = {one.place: one.said for one in tuning.reset(machine, journal)}

    assert said[THP] == "already as it was"
    assert said[SWAPPINESS] == "the reboot made it 10; left alone"
    assert machine.text(SWAPPINESS) == "10"
    assert said[BOOST] == "gone since the reboot"
    assert said[SMT] == "restored"
    assert tuning.recorded(journal) == []


def test_tuned_again_after_a_reboot_remembers_what_the_reboot_left(machine, journal):
    tuning.tune(machine, journal)
    machine.write(BOOT, "second-boot")
    machine.write(SWAPPINESS, "10")
    tuning.tune(machine, journal)

    tuning.reset(machine, journal)

    assert machine.text(SWAPPINESS) == "10"
    # Still tuned across the reboot, so the value from before it comes back.
    assert machine.text(SMT) == "on"


def test_a_value_somebody_set_in_between_is_mentioned(machine, journal):
    tuning.tune(machine, journal)
    machine.write(SWAPPINESS, "42")

    said = {one.place: one.said for one in tuning.reset(machine, journal)}

    assert said[SWAPPINESS] == "restored; somebody had made it 42"
    assert machine.text(SWAPPINESS) == "60"


def test_a_place_that_is_gone_without_a_reboot_is_not_forgotten(machine, journal):
    tuning.tune(machine, journal)
    machine.path(SWAPPINESS).unlink()

    (lost,) = [one for one in tuning.reset(machine, journal) if not one.ok]

    assert lost.said == "not restored: No such file or directory"
    assert [entry.place for entry in tuning.recorded(journal)] == [SWAPPINESS]


def test_only_the_named_knobs_are_tuned(machine, journal):
    chosen = [knob for knob in KNOBS if knob.name == "thp"]

    tuning.tune(machine, journal, knobs=chosen)

    assert machine.written == [THP]


def test_a_journal_that_cannot_be_read_stops_everything(machine, journal):
    journal.mkdir(parents=True)
    (journal / tuning.JOURNAL).write_text("{")

    for act in (tuning.tune, tuning.reset):
        with pytest.raises(HostError, match="values from before tuning"):
            act(machine, journal)
    assert machine.written == []


def test_a_machine_without_knobs_is_fine(tmp_path, journal):
    machine = a_machine(tmp_path / "host", SMALL_GUEST)

    assert tuning.tune(machine, journal) == []
    assert tuning.reset(machine, journal) == []
    assert all(knob_check(knob, machine).found == "not visible here" for knob in KNOBS)
    assert all(check.ok for check in quiet_checks(machine, look_s=0))


def test_a_file_that_cannot_be_read_is_a_knob_that_is_not_there(machine):
    machine.path(SWAPPINESS).unlink()
    # A folder cannot be read as a file, whoever tries: root may read everything else.
    machine.path(SWAPPINESS).mkdir()

    assert machine.text(SWAPPINESS) == ""
    assert SWAPPINESS not in {step.place for step in tuning.plan(machine)}


def test_without_systemd_a_daemon_is_seen_and_left_to_a_person(tmp_path, journal):
    machine = a_machine(tmp_path / "host", SMALL_GUEST)
    machine.write("/proc/77/comm", "cron")
    machine.write("/proc/78/comm", "crony")

    (step,) = tuning.tune(machine, journal)

    assert (step.place, step.fault) == (
        "/proc/77/comm",
        "no systemd here: stop cron by hand",
    )
    assert all(one.ok for one in tuning.reset(machine, journal))


def test_deep_sleep_of_a_guest_is_the_hosts_affair(machine):
    machine.write("/proc/cpuinfo", "flags\t\t: fpu hypervisor")

    assert "idle_states" not in {step.knob for step in tuning.plan(machine)}


def test_some_of_many_places_are_counted(machine):
    for cpu in range(14):
        machine.write(f"{CPU}/cpu{cpu}/cpufreq/scaling_governor", "performance")

    check = next(check for check in quiet_checks(machine, look_s=0) if check.name == "governor")

    assert not check.ok
    assert check.found == "powersave at 2 of 16"
    assert "forkwatch host tune --knob governor" in check.advice


def test_this_machines_knobs_can_be_read():
    # Every Linux has at least this one.
    (aslr,) = [knob for knob in KNOBS if knob.name == "aslr"]

    assert set(aslr.read(Machine()).values()) <= {"0", "1", "2"}
    assert aslr.available(Machine())
