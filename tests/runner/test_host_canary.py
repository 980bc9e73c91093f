from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
import psutil
import pytest

from results.document import CanaryReading
from runner.host import canary

AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


class Scripted:
    """An instrument that says what it was told to, one value after the other."""

    units: Mapping[str, str] = {"cpu": "events/s", "disk": "CPU us/read"}

    def __init__(self, **values: Sequence[float]) -> None:
        self.values = {name: list(series) for name, series in values.items()}
        self.asked: list[list[str]] = []

    def measure(self, names: Sequence[str], *, cpu: int) -> Mapping[str, float]:
        self.asked.append(list(names))
        return {name: self.values[name].pop(0) for name in names if self.values.get(name)}


def look(folder, instrument, *, moment="before", fingerprint="same", cpu=1):
    return canary.look(
        folder,
        instrument,
        moment=moment,
        cpu=cpu,
        fingerprint=fingerprint,
        at=AT,
        pause_s=0,
    )


def usual(count: int, *, level: float = 4400.0, sd: float = 0.004) -> list[float]:
    rng = np.random.default_rng(20261121)
    return list(level * np.exp(rng.normal(0, sd, count)))


def filled(folder, count: int = 12, **others) -> None:
    instrument = Scripted(cpu=usual(count))
    for _ in range(count):
        look(folder, instrument, **others)


def test_a_short_history_judges_nothing(tmp_path):
    filled(tmp_path, canary.HISTORY_MIN - 1)

    (reading,) = look(tmp_path, Scripted(cpu=[1000.0]))

    assert (reading.suspicious, reading.change_percent) == (False, None)
    assert reading.history == canary.HISTORY_MIN - 1


def test_a_host_as_usual_is_trusted(tmp_path):
    filled(tmp_path)

    (reading,) = look(tmp_path, Scripted(cpu=[4420.0]))

    assert not reading.suspicious
    assert reading.change_percent == pytest.approx(0.5, abs=0.4)
    assert canary.unstable([reading]) == ""


@pytest.mark.parametrize("level", [3800.0, 5000.0])
def test_a_host_that_has_changed_is_not_whichever_way(tmp_path, level):
    filled(tmp_path)
    instrument = Scripted(cpu=[level, level * 1.002])

    (reading,) = look(tmp_path, instrument)

    assert reading.suspicious
    assert reading.value == level * 1.002
    assert instrument.asked == [["cpu", "disk"], ["cpu"]]
    assert reading.change_percent == pytest.approx(100 * (level * 1.002 / 4400 - 1), abs=0.5)
    said = canary.unstable([reading])
    assert f"{reading.change_percent:+.1f} % from this host's last 12 looks" in said


def test_a_burst_passes(tmp_path):
    filled(tmp_path)

    (reading,) = look(tmp_path, Scripted(cpu=[3000.0, 4390.0]))

    assert not reading.suspicious
    assert reading.value == 4390.0


def test_a_host_that_was_always_noisy_is_not_accused_of_it(tmp_path):
    instrument = Scripted(cpu=usual(20, sd=0.08))
    for _ in range(20):
        look(tmp_path, instrument)

    (reading,) = look(tmp_path, Scripted(cpu=[4000.0, 4000.0]))

    assert not reading.suspicious


def test_a_change_too_small_to_matter_is_none(tmp_path):
    instrument = Scripted(cpu=usual(29, sd=0.0005))
    for _ in range(29):
        look(tmp_path, instrument)

    (reading,) = look(tmp_path, Scripted(cpu=[4400 * 0.98] * 2))

    assert not reading.suspicious


@pytest.mark.parametrize("other", [{"fingerprint": "another kernel"}, {"cpu": 0}])
def test_only_the_same_host_as_it_was_is_compared(tmp_path, other):
    filled(tmp_path)

    (reading,) = look(tmp_path, Scripted(cpu=[3000.0]), **other)

    assert reading.history == 0


def test_an_accepted_change_begins_a_new_past(tmp_path):
    filled(tmp_path)
    canary.accept(tmp_path, at=AT)

    (reading,) = look(tmp_path, Scripted(cpu=[3000.0]))

    assert (reading.history, reading.suspicious) == (0, False)


def test_honest_hosts_are_seldom_accused(tmp_path):
    # 200 looks at hosts with 2 % noise; the promise is one in a thousand, twice in a row.
    rng = np.random.default_rng(7)
    accused = 0
    for number in range(20):
        folder = tmp_path / str(number)
        levels = list(4400 * np.exp(rng.normal(0, 0.02, 50)))
        past = [
            canary.Look(taken_at=AT, moment="alone", fingerprint="same", cpu=1, values={"cpu": one})
            for one in levels[:20]
        ]
        canary.history(folder).append(past)
        instrument = Scripted(cpu=levels[20:])
        for _ in range(10):
            accused += look(folder, instrument)[0].suspicious

    assert accused <= 1


def test_both_moments_of_a_job_are_named():
    common = {"name": "cpu", "unit": "events/s", "history": 9, "suspicious": True}
    readings = [
        CanaryReading(moment="before", value=10.0, change_percent=-9.0, **common),
        CanaryReading(moment="after", value=9.0, change_percent=-18.0, **common),
    ]

    said = canary.unstable(readings)

    assert "cpu before the job was 10 events/s, -9.0 %" in said
    assert "cpu after the job was 9 events/s, -18.0 %" in said


def test_the_noise_of_a_host_is_told(tmp_path):
    for value in (99.0, 100.0, 101.0):
        look(tmp_path, Scripted(cpu=[value]))

    noise = canary.noise(canary.history(tmp_path).read())

    assert noise == {"cpu": pytest.approx(1.0)}


@pytest.mark.alone
def test_real_programs_measure_this_machine(tmp_path):
    programs = canary.Programs(tmp_path)
    last = psutil.cpu_count() - 1

    found = programs.measure(["cpu", "memory", "disk"], cpu=last)

    assert set(found) - {"disk"} == {"cpu", "memory"}
    assert all(value > 0 for value in found.values())
    # fio is optional; without it one sentence says so.
    assert ("disk" in found) == (shutil.which("fio") is not None)
    assert bool(programs.missing()) == ("disk" not in found)
