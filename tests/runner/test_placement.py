from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from runner import placement, spinners
from runner.errors import HostError
from runner.host import topology
from runner.host.profile import HostProfile
from runner.placement import decide, place
from tests.fakes.host_tree import (
    DESKTOP,
    EPYC,
    PHONE,
    PHONE_CAPACITY,
    SMALL_GUEST,
    TWO_PACKAGES,
    a_machine,
)
from tests.runner.processes import until


@pytest.mark.parametrize(
    ("mode", "cpus", "server", "client"),
    [
        ("shared-core", [0, 1], (1,), (1,)),
        ("shared-core", [0, 1, 2, 3], (3,), (3,)),
        # A single processor leaves nothing to keep free.
        ("shared-core", [0], (0,), (0,)),
        ("disjoint", [0], (0,), (0,)),
        # Two processors: the server takes the first, there is no other.
        ("disjoint", [0, 1], (0,), (1,)),
        ("disjoint-awake", [0, 1], (0,), (1,)),
        ("disjoint", [0, 1, 2, 3], (1, 2), (3,)),
        # A quarter of the quiet ones for the client.
        ("disjoint", list(range(9)), (1, 2, 3, 4, 5, 6), (7, 8)),
        ("unpinned", [0, 1, 2, 3], (), ()),
    ],
)
def test_where_server_and_client_go(mode, cpus, server, client):
    placed = place(mode, cpus=cpus)

    assert (placed.server_cpus, placed.client_cpus) == (server, client)


def test_the_recorded_mode_is_what_was_done():
    assert place("disjoint", cpus=[0]).mode == "shared-core"
    assert place("disjoint", cpus=[0, 1]).mode == "disjoint"
    assert place("disjoint-awake", cpus=[0, 1]).mode == "disjoint-awake"


@pytest.mark.parametrize(
    ("name", "layout", "allowed", "server", "client"),
    [
        ("guest", SMALL_GUEST, range(2), (0,), (1,)),
        # Threads 8 to 15 share the cores of 0 to 7 and stay empty.
        ("desktop", DESKTOP, range(16), (1, 2, 3, 4, 5, 6), (7,)),
        # One package's node only, and the last: the kernel's own work is on the first.
        ("two packages", TWO_PACKAGES, range(16), (3, 5), (7,)),
        ("epyc", EPYC, range(96), (43, 44, 45, 46), (47,)),
        # Three small, four large and one very large core: the four.
        ("phone", PHONE, range(8), (4, 5), (6,)),
        # A control group that allows one thread of each of two cores, on two nodes.
        ("control group", TWO_PACKAGES, (2, 3), (2,), (3,)),
        # Both threads of one core and one of another: two cores.
        ("half a core", DESKTOP, (2, 10, 3), (2,), (3,)),
        # Threads of a single core cannot be told apart: only one is used, shared.
        ("one core", DESKTOP, (2, 10), (2,), (2,)),
    ],
)
def test_topology_decides(tmp_path, name, layout, allowed, server, client):
    machine = a_machine(tmp_path, layout, capacity=PHONE_CAPACITY if layout is PHONE else None)

    placed = place("disjoint", cpus=list(allowed), layout=topology.read(machine))

    assert (placed.server_cpus, placed.client_cpus) == (server, client)


@pytest.mark.parametrize("layout", [SMALL_GUEST, DESKTOP, TWO_PACKAGES, EPYC])
@pytest.mark.parametrize("mode", ["disjoint", "disjoint-awake", "shared-core"])
def test_no_core_is_used_twice_and_no_node_left(tmp_path, layout, mode):
    seen = topology.read(a_machine(tmp_path, layout))

    placed = place(mode, cpus=[row[0] for row in layout], layout=seen)

    by_number = {cpu.number: cpu for cpu in seen.cpus}
    used = {*placed.server_cpus, *placed.client_cpus}
    assert len({by_number[cpu].core for cpu in used}) == len(used)
    assert len({by_number[cpu].node for cpu in used}) == 1
    if mode != "shared-core":
        assert not set(placed.server_cpus) & set(placed.client_cpus)


def test_processors_that_take_interrupts_are_left_out_where_there_are_enough():
    assert place("disjoint", cpus=range(8), avoid=(3, 7)).server_cpus == (1, 2, 4, 5)
    assert place("disjoint", cpus=range(8), avoid=(3, 7)).client_cpus == (6,)
    # With two there is no choice.
    assert place("disjoint", cpus=range(2), avoid=(1,)).client_cpus == (1,)
    # However many take interrupts, half of the cores stay in use.
    assert len(place("disjoint", cpus=range(8), avoid=range(8)).server_cpus) == 3


def test_interrupts_are_steered_or_spread(tmp_path):
    machine = a_machine(tmp_path, DESKTOP[:4])
    table = "     CPU0 CPU1 CPU2 CPU3\n 24: {} IO-APIC 5-edge disk\nLOC: 9999999 1 1 1 Local timer"

    def seen(counts: str) -> tuple[int, ...]:
        machine.write("/proc/interrupts", table.format(counts))
        return topology.interrupt_cpus(machine)

    assert seen("10 90000 20 30") == (1,)
    assert seen("30000 25000 20000 31000") == ()
    # Too few to tell.
    assert seen("10 900 20 30") == ()
    machine.path("/proc/interrupts").unlink()
    assert topology.interrupt_cpus(machine) == ()


def a_profile(**modes: str) -> HostProfile:
    return HostProfile(
        made_at=datetime(2026, 11, 21, tzinfo=UTC),
        fingerprint="f",
        modes={kind.replace("_", "-"): mode for kind, mode in modes.items()},
        figures=(),
        avoid=(5,),
    )


def test_the_plan_goes_before_the_profile_and_the_profile_before_the_default(tmp_path):
    machine = a_machine(tmp_path, DESKTOP)
    profile = a_profile(single_client="shared-core", several_clients="disjoint-awake")
    common = {"cpus": list(range(16)), "machine": machine}

    explicit = decide("unpinned", profile=profile, threads=1, **common)
    one = decide(None, profile=profile, threads=1, **common)
    several = decide(None, profile=profile, threads=4, **common)
    writes = decide(None, profile=profile, threads=4, writes_only=True, **common)
    nothing = decide(None, profile=None, threads=4, **common)
    lone = decide(None, profile=None, threads=1, **common)

    modes = [placed.mode for placed in (explicit, one, several, writes, nothing, lone)]
    assert modes == [
        *("unpinned", "shared-core", "disjoint-awake", "disjoint"),
        *("disjoint", "shared-core"),
    ]
    # What takes interrupts is known from calibration only.
    assert 5 not in several.server_cpus
    assert 5 in nothing.server_cpus


def idle_of(cpu: int, seconds: float) -> float:
    """Return the share of a processor's time that nothing used."""
    before = psutil.cpu_times(percpu=True)[cpu]
    until(lambda: sum(psutil.cpu_times(percpu=True)[cpu]) - sum(before) >= seconds)
    after = psutil.cpu_times(percpu=True)[cpu]
    return (after.idle - before.idle) / (sum(after) - sum(before))


@pytest.mark.alone
def test_a_spinner_leaves_no_idle_time_and_takes_only_that():
    last = psutil.cpu_count() - 1

    with spinners.spinning([last]) as (pid,):
        spinner = psutil.Process(pid)
        assert os.sched_getscheduler(pid) == os.SCHED_IDLE
        assert spinner.cpu_affinity() == [last]
        group = Path(f"/proc/{pid}/autogroup")
        assert not group.exists() or group.read_text().endswith("nice 19\n")
        # Whatever else runs on this machine: nothing is left over.
        assert idle_of(last, 0.5) < 0.1
        # An ordinary process beside it gets nearly everything.
        used_before, spun_before = _burn(last, spinner)
        assert used_before > 10 * spun_before

    assert not psutil.pid_exists(pid)


def _burn(cpu: int, spinner: psutil.Process) -> tuple[float, float]:
    """Return what we, and what the spinner, got of a processor while we wanted all of it."""
    usual = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        ours, theirs = psutil.Process().cpu_times(), spinner.cpu_times()
        while psutil.Process().cpu_times().user - ours.user < 0.6:
            pass
        now = spinner.cpu_times()
        return psutil.Process().cpu_times().user - ours.user, now.user - theirs.user
    finally:
        os.sched_setaffinity(0, usual)


def test_a_spinner_dies_with_a_runner_that_was_killed():
    read_end, write_end = os.pipe()
    runner = os.fork()
    if runner == 0:
        with spinners.spinning([0, psutil.cpu_count() - 1]) as pids:
            os.write(write_end, " ".join(map(str, pids)).encode())
            os.kill(os.getpid(), 9)
    pids = [int(word) for word in os.read(read_end, 100).split()]
    assert os.waitpid(runner, 0)[1] == 9
    os.close(read_end)
    os.close(write_end)

    assert len(pids) == 2
    until(lambda: not any(map(psutil.pid_exists, pids)))


def test_a_processor_that_is_not_there_cannot_be_kept_awake():
    with (
        pytest.raises(HostError, match="processor 4000 cannot be kept awake"),
        spinners.spinning([0, 4000]),
    ):
        pytest.fail("it began")


def test_bare_metal_is_asked_and_a_guest_is_spun(tmp_path):
    metal = a_machine(tmp_path, SMALL_GUEST)
    metal.write(spinners.DMA_LATENCY, "")

    with spinners.awake([0, 1], metal) as pids:
        asked = metal.path(spinners.DMA_LATENCY).read_bytes()

    assert (pids, asked[:4]) == ((), b"\x02\x00\x00\x00")
    # A guest: the host would not listen.
    metal.write("/proc/cpuinfo", "flags : hypervisor")
    with spinners.awake([0], metal) as pids:
        assert len(pids) == 1
    # No permission: spinners as well.
    metal.write("/proc/cpuinfo", "flags : fpu")
    metal.path(spinners.DMA_LATENCY).unlink()
    with spinners.awake([0], metal) as pids:
        assert len(pids) == 1


@pytest.mark.parametrize(
    ("mode", "count"), [("disjoint-awake", 2), ("disjoint", 0), ("shared-core", 0)]
)
def test_only_the_awake_mode_keeps_processors_awake(tmp_path, mode, count):
    guest = a_machine(tmp_path, SMALL_GUEST)
    guest.write("/proc/cpuinfo", "flags : hypervisor")

    with placement.kept(place(mode, cpus=[0, 1]), guest) as pids:
        assert len(pids) == count
