from __future__ import annotations

import os
import sys
import time
from dataclasses import replace

import psutil
import pytest

from runner import disturbance, shell
from runner.disturbance import Limits, Reading, judge, shares

QUIET = Reading(
    at_s=100.0,
    cpus=2,
    busy_s=50.0,
    steal_s=1.0,
    own_s=40.0,
    wait_s={7: 3.0, 8: 1.0},
    pressure_s={"cpu": 5.0, "io": 6.0, "memory": 7.0},
)


def later(**grown: float) -> Reading:
    """Return the reading after a slice of ten seconds in which ours used five."""
    return replace(
        QUIET,
        at_s=110.0,
        busy_s=55.0 + grown.pop("foreign", 0.0),
        own_s=45.0,
        steal_s=1.0 + grown.pop("steal", 0.0),
        wait_s={7: 3.0 + grown.pop("wait", 0.0), 8: 1.0},
        pressure_s={name: value + grown.pop(name, 0.0) for name, value in QUIET.pressure_s.items()},
    )


STRICT = Limits(wait=5.0, pressure_cpu=10.0, pressure_io=10.0)


def test_a_quiet_slice_is_not_disturbed_however_busy_we_were():
    assert judge(QUIET, later(), STRICT) == ""
    assert judge(QUIET, later(foreign=0.5, steal=0.1, wait=0.3, cpu=0.5, io=0.5), STRICT) == ""


@pytest.mark.parametrize(
    ("grown", "said"),
    [
        ({"steal": 0.5}, "other guests had 5.0 % of a measured processor (limit 2.0 %)"),
        ({"foreign": 2.0}, "other processes had 20.0 % of a measured processor (limit 10.0 %)"),
        ({"wait": 1.0}, "the server waited 10.0 % of the time for a processor (limit 5.0 %)"),
        ({"cpu": 3.0}, "tasks waited for processors 30.0 % of the time (limit 10.0 %)"),
        ({"io": 3.0}, "all tasks waited for the disk 30.0 % of the time (limit 10.0 %)"),
        ({"memory": 0.2}, "tasks waited for memory 2.0 % of the time (limit 1.0 %)"),
    ],
)
def test_each_disturbance_is_named_with_its_share_and_limit(grown, said):
    assert judge(QUIET, later(**grown), STRICT) == said


def test_what_belongs_to_the_workload_is_not_judged_uncalibrated():
    # One shared core: the server waits for its client; a writing workload waits for its disk.
    assert judge(QUIET, later(wait=4.0, cpu=9.0, io=6.0), Limits()) == ""


def test_a_new_thread_brings_its_own_wait_and_an_ended_one_takes_nothing_away():
    after = replace(later(), wait_s={8: 1.5, 9: 0.25})

    assert shares(QUIET, after)["wait"] == pytest.approx(7.5)


def test_an_account_that_goes_back_is_no_disturbance():
    after = replace(later(), busy_s=0.0, steal_s=0.0, pressure_s={"cpu": 0.0})

    assert judge(QUIET, after, STRICT) == ""


def test_readings_of_one_moment_are_no_disturbance():
    assert judge(QUIET, QUIET, STRICT) == ""


def test_readings_have_no_throughput():
    # The rule must never see how fast a slice was; a field added for it would show here.
    names = set(Reading.__dataclass_fields__)

    assert names == {"at_s", "cpus", "busy_s", "steal_s", "own_s", "wait_s", "pressure_s"}


LAST = (psutil.cpu_count() or 1) - 1
BURN = "import time\nwhile True: pass"


def burning(cpu: int, output) -> shell.Process:
    """Start a process that wants all of one processor."""
    words = ["taskset", "--cpu-list", str(cpu), sys.executable, "-S", "-c", BURN]
    return shell.start(words, output=output)


def foreign_while(process: shell.Process, own: list[int], seconds: float) -> tuple[float, float]:
    """Return the foreign share in percent, and what the process had of the time."""
    spent = psutil.Process(process.pid)
    before, used = disturbance.read(own, [LAST]), sum(spent.cpu_times()[:2])
    time.sleep(seconds)
    used = sum(spent.cpu_times()[:2]) - used
    after = disturbance.read(own, [LAST])
    return shares(before, after)["foreign"], 100 * used / (after.at_s - before.at_s)


@pytest.mark.alone
def test_a_busy_loop_on_the_measured_core_is_recognised(tmp_path):
    with (tmp_path / "out").open("wb") as output:
        process = burning(LAST, output)
        try:
            before = disturbance.read([], [LAST])
            time.sleep(1.5)
            after = disturbance.read([], [LAST])
        finally:
            process.kill()

    reason = judge(before, after, Limits(steal=None))

    assert reason.startswith("other processes had ")
    assert reason.endswith("% of a measured processor (limit 10.0 %)")


@pytest.mark.alone
def test_the_same_loop_is_no_stranger_when_it_is_ours(tmp_path):
    # Others use this machine too, so the difference is looked at: what we own is not foreign.
    with (tmp_path / "out").open("wb") as output:
        process = burning(LAST, output)
        try:
            time.sleep(0.2)
            as_stranger, had = foreign_while(process, [], 1.0)
            as_ours, had_again = foreign_while(process, [process.pid], 1.0)
        finally:
            process.kill()

    assert as_stranger >= 0.7 * had
    # All others together got what it did not get, and no more.
    assert as_ours <= 100 - had_again + 15


@pytest.mark.alone
def test_a_client_that_has_ended_is_ours(tmp_path):
    words = [sys.executable, "-S", "-c", "import time\nwhile time.process_time() < 0.5: pass"]
    before = disturbance.read([], [LAST])
    shell.run(["taskset", "--cpu-list", str(LAST), *words], timeout_s=60)
    after = disturbance.read([], [LAST])

    assert after.own_s - before.own_s >= 0.5


def test_a_server_that_has_gone_is_read_as_nothing():
    reading = disturbance.read([2**22 + 1], [LAST])

    assert reading.wait_s == {}
    assert reading.cpus == 1


def test_without_pinning_every_processor_is_measured():
    assert disturbance.read([os.getpid()], []).cpus == psutil.cpu_count()
    assert os.getpid() in disturbance.read([os.getpid()], []).wait_s


def test_a_kernel_without_pressure_accounts_is_read(tmp_path):
    (tmp_path / "stat").write_text("cpu 1 2\ncpu0 100 20 3 4 5 6 7 8 0 0\nintr 5\n")

    reading = disturbance.read([], [0], proc=tmp_path)

    ticks = os.sysconf("SC_CLK_TCK")
    assert reading.busy_s == 123 / ticks
    assert reading.steal_s == 8 / ticks
    assert reading.pressure_s == {"cpu": 0.0, "io": 0.0, "memory": 0.0}
