from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import numpy as np
import psutil
import pytest

from results.document import Placement
from runner.disturbance import Limits
from runner.errors import HostError
from runner.host import pingpong, profile
from runner.host.calibration import Sample, calibrate, limits_from, quietest
from runner.host.loads import PingPong, ServerLoad, installed_server, server_load
from runner.placement import place
from tests.fakes.host_tree import DESKTOP, FakeMachine, a_machine

AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
CALM = dict.fromkeys(
    ("steal", "foreign", "wait", "pressure_cpu", "pressure_io", "pressure_memory"), 0.5
)


class Scripted:
    """An instrument with a given spread for each mode, and bursts of others where asked for."""

    def __init__(self, spread: Mapping[str, float], *, bursts: Sequence[int] = ()) -> None:
        self._rng = np.random.default_rng(20261121)
        self._spread, self._bursts = spread, set(bursts)
        self.turns: list[tuple[str, str]] = []

    def name(self, kind):
        return f"scripted {kind}"

    def warm_up(self, kind, placed):
        """Do nothing."""

    def sample(self, kind, placed, spinners):
        self.turns.append((kind, placed.mode))
        burst = len(self.turns) in self._bursts
        noise = self._rng.normal(0, self._spread[placed.mode])
        # Kept awake means spinners, and nothing else does.
        assert bool(spinners) == (placed.mode == "disjoint-awake")
        return Sample(
            ops_s=float(1000 * np.exp(noise) * (0.3 if burst else 1)),
            shares=CALM | ({"foreign": 60.0} if burst else {}),
        )


@pytest.fixture
def machine(tmp_path) -> FakeMachine:
    guest = a_machine(tmp_path, DESKTOP[:2])
    guest.write("/proc/cpuinfo", "flags : hypervisor")
    guest.write("/proc/interrupts", "     CPU0 CPU1\n 36: 0 67043 PCI-MSIX virtio1-req.0\n")
    return guest


@contextmanager
def kept(placement: Placement, machine) -> Iterator[tuple[int, ...]]:
    """Keep awake by word only: test_placement.py has the real ones."""
    yield (1, 2) if placement.mode == "disjoint-awake" else ()


def calibrated(machine, instrument, *, rounds=6):
    return calibrate(
        instrument,
        machine=machine,
        cpus=[0, 1],
        rounds=rounds,
        fingerprint="print",
        at=AT,
        keep=kept,
    )


def test_the_quietest_mode_is_found_for_each_kind(machine):
    spread = {"disjoint": 0.05, "disjoint-awake": 0.0004, "shared-core": 0.011}

    found = calibrated(machine, Scripted(spread))

    assert found.modes == {
        "single-client": "disjoint-awake",
        "several-clients": "disjoint-awake",
        "io": "disjoint-awake",
    }
    assert found.avoid == (1,)
    assert found.too_busy() == ""
    (figure,) = [
        one for one in found.figures if (one.kind, one.mode) == ("single-client", "disjoint")
    ]
    assert figure.samples == 6
    assert figure.cv_low_percent < figure.cv_percent < figure.cv_high_percent
    assert figure.cv_low_percent < 5 < figure.cv_high_percent


def test_a_mode_that_is_no_quieter_is_not_preferred(machine):
    found = calibrated(
        machine,
        Scripted(dict.fromkeys(("disjoint", "disjoint-awake"), 0.01) | {"shared-core": 0.009}),
    )

    assert set(found.modes.values()) == {"disjoint"}


def test_equal_modes_are_seldom_swapped():
    # Two alternatives at 5 % each: about one in ten.
    rng = np.random.default_rng(3)
    swapped = sum(
        quietest({name: 100 * np.exp(rng.normal(0, 0.02, 6)) for name in ("a", "b", "c")}) != "a"
        for _ in range(400)
    )

    assert 20 <= swapped <= 60


def test_numbers_without_any_spread_decide():
    assert quietest({"a": [10.0, 11.0, 12.0], "b": [5.0, 5.0, 5.0]}) == "b"
    assert quietest({"a": [5.0, 5.0, 5.0], "b": [5.0, 5.0, 5.0]}) == "a"


def test_modes_take_turns_there_and_back(machine):
    instrument = Scripted(dict.fromkeys(("disjoint", "disjoint-awake", "shared-core"), 0.01))

    calibrated(machine, instrument, rounds=3)

    there = ["disjoint", "disjoint-awake", "shared-core"]
    first = [mode for kind, mode in instrument.turns if kind == "single-client"]
    assert first == [*there, *reversed(there), *there]


def test_a_burst_is_taken_again(machine):
    spread = dict.fromkeys(("disjoint", "disjoint-awake", "shared-core"), 0.005)

    found = calibrated(machine, Scripted(spread, bursts=[1, 5]))

    assert all(figure.disturbed == 0 for figure in found.figures)
    assert all(figure.cv_percent < 2 for figure in found.figures)


def test_a_busy_host_is_not_calibrated(machine):
    spread = dict.fromkeys(("disjoint", "disjoint-awake", "shared-core"), 0.005)

    found = calibrated(machine, Scripted(spread, bursts=range(1000)), rounds=3)

    assert "21 of 21 slices had others' load in them" in found.too_busy()
    # What others do must not become the usual.
    assert found.limits == {}
    assert found.limits_for("disjoint", "single-client") == Limits()


def test_limits_are_above_quiet_slices_and_leave_out_what_is_our_own():
    slices = [
        CALM | {"wait": 20.0 + number, "pressure_cpu": 90.0, "foreign": 1.0} for number in range(5)
    ]

    limits = limits_from(slices)

    assert limits.foreign == 5.0
    assert limits.wait == pytest.approx(22 + 6 * 1.4826, abs=0.01)
    # On a shared core everybody waits all the time: that tells nothing about others.
    assert limits.pressure_cpu is None


def test_a_profile_is_kept_and_a_broken_one_is_named(machine, tmp_path):
    found = calibrated(
        machine, Scripted(dict.fromkeys(("disjoint", "disjoint-awake", "shared-core"), 0.01))
    )
    folder = tmp_path / "kept"
    assert profile.read(folder) is None

    profile.write(folder, found)

    assert profile.read(folder) == found
    assert found.limits_for("disjoint", "io") == found.limits["disjoint/io"]
    (folder / profile.PROFILE).write_text("{}")
    with pytest.raises(HostError, match="host calibrate"):
        profile.read(folder)


CPUS = sorted(os.sched_getaffinity(0))


@pytest.mark.alone
@pytest.mark.parametrize("mode", ["disjoint", "shared-core", "unpinned"])
def test_a_real_ping_pong_plays(mode):
    assert pingpong.run(place(mode, cpus=CPUS), pairs=2, seconds=0.3) > 0


@pytest.mark.alone
def test_a_ping_pong_to_disk_leaves_nothing_behind(tmp_path):
    load = PingPong(tmp_path, seconds=1)

    sample = load.sample("io", place("disjoint", cpus=CPUS), ())

    assert sample.ops_s > 0
    assert set(sample.shares) == set(Limits.model_fields)
    assert list(tmp_path.iterdir()) == []


def test_a_ping_pong_that_fails_is_an_error():
    with pytest.raises(HostError, match="ping-pong gave no number"):
        pingpong.run(Placement(mode="x", server_cpus=(4000,), client_cpus=(0,)), pairs=1, seconds=1)


@pytest.mark.alone
def test_a_real_server_is_moved_and_measured(tmp_path):
    prefix = installed_server()
    assert prefix is not None, "apt-get install mariadb-server"
    placed = place("shared-core", cpus=CPUS)

    with server_load(prefix, tmp_path, seconds=1) as load:
        assert isinstance(load, ServerLoad)
        load.warm_up("single-client", placed)
        sample = load.sample("single-client", placed, ())
        (pid,) = load._server.pids
        where = {tuple(os.sched_getaffinity(thread.id)) for thread in psutil.Process(pid).threads()}

    assert sample.ops_s > 100
    assert where == {placed.server_cpus}
    assert list(tmp_path.iterdir()) == []


def test_a_prefix_without_a_server_is_named(tmp_path):
    with (
        pytest.raises(HostError, match="has no server"),
        server_load(tmp_path, tmp_path, seconds=1),
    ):
        pytest.fail("it ran")
