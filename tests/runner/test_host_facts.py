from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import psutil
import pytest

from runner import host
from runner.host import fingerprint, readings
from runner.host.checks import quiet_checks, storage_checks
from runner.host.facts import describe, layout
from runner.host.history import History
from runner.host.machine import Machine, cpu_list, show_cpus
from tests.fakes.host_tree import DESKTOP, SWAPPINESS, TWO_PACKAGES, a_machine, a_noisy_server

AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0", (0,)),
        ("0-3", (0, 1, 2, 3)),
        ("0-1,8,10-11", (0, 1, 8, 10, 11)),
        ("", ()),
        ("none", ()),
    ],
)
def test_kernel_lists_of_processors(text, cpus):
    assert cpu_list(text) == cpus
    assert show_cpus(cpus) == ("" if text == "none" else text)


def by_name(checks) -> dict[str, host.Check]:
    return {check.name: check for check in checks}


def test_a_slow_clock_and_a_single_processor_are_noticed(tmp_path):
    machine = a_machine(tmp_path, DESKTOP[:1])
    machine.write(readings.CLOCK, "hpet")

    found = by_name(quiet_checks(machine, look_s=0))

    assert not found["clocksource"].ok
    assert not found["cpus"].ok
    for good in ("tsc", "kvm-clock", "arch_sys_counter"):
        machine.write(readings.CLOCK, good)
        assert by_name(quiet_checks(machine, look_s=0))["clocksource"].ok


@pytest.mark.parametrize(("degrees", "ok"), [(60, True), (89, True), (91, False)])
def test_heat_is_judged_by_the_sensors_own_limit(tmp_path, degrees, ok):
    machine = a_machine(tmp_path, DESKTOP)
    machine.write("/sys/class/hwmon/hwmon2/name", "coretemp")
    machine.write("/sys/class/hwmon/hwmon2/temp1_input", str(degrees * 1000))
    machine.write("/sys/class/hwmon/hwmon2/temp1_crit", "100000")
    # A disk may be as hot as it likes, as far as processors are concerned.
    machine.write("/sys/class/hwmon/hwmon1/name", "nvme")
    machine.write("/sys/class/hwmon/hwmon1/temp1_input", "99000")

    found = by_name(quiet_checks(machine, look_s=0))["temperature"]

    assert found.ok is ok
    assert found.found == f"{degrees} °C (coretemp, critical at 100)"


class BusyMachine(Machine):
    """A machine whose account of processor time moves on at every look."""

    def text(self, name: str) -> str:
        if name != "/proc/stat":
            return super().text(name)
        looks = time.monotonic_ns()
        return f"cpu {looks} 0 {looks} {7 * looks} 0 0 0 {looks}"


def test_load_and_steal_are_shares_of_all_time(tmp_path):
    busy, steal = readings.busy_and_steal(BusyMachine(root=tmp_path), look_s=0.001)

    assert busy == pytest.approx(20, abs=0.1)
    assert steal == pytest.approx(10, abs=0.1)
    found = by_name(quiet_checks(BusyMachine(root=tmp_path), look_s=0.001))
    assert not found["steal"].ok


def test_the_file_system_is_the_innermost_mount(tmp_path):
    (tmp_path / "with blank").mkdir()
    mounts = tmp_path / "mounts"
    lines = ["rootfs / ext4 rw", f"disk {tmp_path} xfs rw"]
    lines.append(f"net {tmp_path}/with\\040blank nfs4 rw")
    mounts.write_text("\n".join(lines))

    kinds = [
        readings.filesystem(folder, str(mounts))
        for folder in (tmp_path.parent, tmp_path, tmp_path / "with blank")
    ]

    assert kinds == ["ext4", "xfs", "nfs4"]


def test_the_homes_disk_is_looked_at(tmp_path):
    found = by_name(storage_checks(tmp_path))

    assert "GiB free" in found["disk"].found
    assert readings.filesystem(tmp_path) in found["filesystem"].found
    # Trying to share blocks leaves nothing behind.
    assert list(tmp_path.iterdir()) == []


def test_this_machine_is_described_as_before():
    described = host.describe("lab")

    assert described.host_class == "lab"
    assert described.logical_cpus == psutil.cpu_count()
    assert described.memory_bytes == psutil.virtual_memory().total
    assert described.settings["aslr"] in {"0", "1", "2"}
    assert "load" in {check.name for check in host.quiet_checks()}


def test_warnings_of_a_description_name_what_is_noisy(tmp_path):
    described = describe("lab", a_noisy_server(tmp_path))

    assert "thp: always" in described.warnings
    assert "governor: schedutil, powersave at 16 of 16" in described.warnings
    assert described.settings["turbo"] == "1"


def test_a_layout_counts_cores_packages_and_nodes(tmp_path):
    shown = layout(a_machine(tmp_path, TWO_PACKAGES))

    assert shown["processors"] == "16 logical, 8 cores, 2 packages"
    assert shown["memory_nodes"] == "2"


def test_a_fingerprint_is_stable_and_says_what_changed(tmp_path):
    machine, folder = a_noisy_server(tmp_path / "host"), tmp_path / "kept"
    machine.write("/proc/sys/kernel/osrelease", "6.1.0-13")

    first = fingerprint.take(machine, tmp_path, at=AT)
    again = fingerprint.take(machine, tmp_path, at=AT + timedelta(days=1))
    assert first.digest == again.digest
    assert fingerprint.remember(folder, first) is None
    assert fingerprint.remember(folder, again) is None

    machine.write("/proc/sys/kernel/osrelease", "6.1.0-15")
    machine.write("/sys/devices/system/cpu/vulnerabilities/retbleed", "Mitigation: IBRS")
    machine.write(SWAPPINESS, "1")
    # Stopped timers do not make results incomparable.
    machine.units["apt-daily.timer"] = "inactive"
    now = fingerprint.take(machine, tmp_path, at=AT + timedelta(days=2))

    before = fingerprint.remember(folder, now)
    assert before == first
    told = [(one.name, one.before, one.after) for one in fingerprint.changes(before, now)]
    assert told == [
        ("kernel", "6.1.0-13", "6.1.0-15"),
        ("mitigation_retbleed", "", "Mitigation: IBRS"),
        ("swappiness", "60", "1"),
    ]
    # Asked again, it still knows since when.
    assert fingerprint.remember(folder, now) == first


def test_a_history_is_bounded_and_survives_a_broken_line(tmp_path):
    history = History(tmp_path / "past.jsonl", fingerprint.Fingerprint, lines_max=3)
    assert history.read() == []
    for number in range(5):
        history.append([fingerprint.Fingerprint(taken_at=AT, facts={"number": str(number)})])
    with (tmp_path / "past.jsonl").open("a") as file:
        file.write('{"taken_at": "half a li')

    assert [line.facts["number"] for line in history.read()] == ["2", "3", "4"]
