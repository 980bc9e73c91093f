"""Canary: a small fixed load that no commit can change, judged by the host's own history.

Measured before and after a job. When it is not what this host has always shown, then the host has
changed, and what the job measured may not be told from that: the job is unstable. The canary knows
nothing of the job, least of all its throughput.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import time
from typing import TYPE_CHECKING, Final, Literal, Protocol

import numpy as np
from pydantic import AwareDatetime, BaseModel, ConfigDict

from detectors.predictive import predict
from results.document import CanaryReading
from runner import shell
from runner.errors import HostError
from runner.host.history import History

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

#: Two looks at three figures are taken in each job, and a suspicious one is taken again: one honest
#: job in some thousands is lost, and a look costs five seconds.
CONFIDENCE: Final = 0.999
#: Changes below this are real at times and matter to no gate: the usual one is 5 %.
CHANGE_MIN: Final = 0.03
#: Runs before there is a past to speak of: the robust centre needs five (detectors.noise).
HISTORY_MIN: Final = 5
#: Older looks say little about a machine with updates every month.
HISTORY_USED: Final = 30
#: Bursts of neighbours last for seconds; a host that has changed is still so after this pause.
PAUSE_S: Final = 3.0
#: The file that single reads are taken from; larger than the cache of any disk controller's queue.
_FILE_SIZE: Final = "64M"
_TIMEOUT_S: Final = 60.0

Moment = Literal["before", "after", "alone", "accepted"]


class Look(BaseModel):
    """One look at the canary, as the history keeps it."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    taken_at: AwareDatetime
    moment: Moment
    #: Of the host, and the processor that was measured: only equals are compared.
    fingerprint: str
    cpu: int
    values: dict[str, float]


class Instrument(Protocol):
    """What measures the figures: real programs, or numbers in a test."""

    #: Unit of each figure by name.
    units: Mapping[str, str]

    def measure(self, names: Sequence[str], *, cpu: int) -> Mapping[str, float]:
        """Return these figures on a processor; one whose program is missing is left out."""
        ...


class Programs:
    """sysbench for processor and memory, fio for the kernel's part of a read."""

    units: Mapping[str, str] = {"cpu": "events/s", "memory": "MiB/s", "disk": "CPU us/read"}

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def missing(self) -> str:
        """Return a sentence about what cannot be measured; empty when everything can."""
        if shutil.which("fio"):
            return ""
        return "the canary does not look at the disk: fio is not installed (apt-get install fio)"

    def measure(self, names: Sequence[str], *, cpu: int) -> Mapping[str, float]:
        """Return these figures on a processor.

        Raises:
            HostError: sysbench is missing, or a program gave no number.
        """
        found = {}
        if "cpu" in names:
            found["cpu"] = _sysbench(
                ["cpu", "--cpu-max-prime=10000", "--time=2"], r"events per second:\s+([\d.]+)", cpu
            )
        if "memory" in names:
            # Blocks larger than the second-level cache, so that memory is part of it.
            words = ["memory", "--memory-block-size=16M", "--memory-total-size=100T", "--time=1"]
            found["memory"] = _sysbench(words, r"\(([\d.]+) MiB/sec\)", cpu)
        if "disk" in names and shutil.which("fio"):
            found["disk"] = self._fio(cpu)
        return found

    def _fio(self, cpu: int) -> float:
        """Return CPU microseconds per read of 4 KiB."""
        self._folder.mkdir(parents=True, exist_ok=True)
        words = [
            "fio",
            "--name=canary",
            f"--filename={self._folder / 'canary.dat'}",
            f"--size={_FILE_SIZE}",
            "--rw=randread",
            "--bs=4k",
            "--ioengine=psync",
            "--time_based",
            "--runtime=2",
            "--output-format=json",
        ]
        done = _pinned([*words, "--direct=1"], cpu)
        if not done.ok:
            # Memory file systems have no direct reads.
            done = _pinned([*words, "--direct=0"], cpu)
        try:
            job = json.loads(done.stdout)["jobs"][0]
            busy = (job["usr_cpu"] + job["sys_cpu"]) / 100
            cost = busy * job["job_runtime"] * 1000 / job["read"]["total_ios"]
        except (ValueError, LookupError, ZeroDivisionError) as error:
            raise HostError(f"fio gave no number: {(done.stderr or done.stdout)[:300]}") from error
        return _positive(cost, "fio")


def _sysbench(words: Sequence[str], pattern: str, cpu: int) -> float:
    program = shell.require("sysbench", package="sysbench")
    done = _pinned([program, *words, "--threads=1", "run"], cpu)
    found = re.search(pattern, done.stdout)
    if not done.ok or found is None:
        raise HostError(f"sysbench {words[0]} gave no number: {done.stderr or done.stdout}"[:300])
    return _positive(float(found.group(1)), f"sysbench {words[0]}")


def _pinned(words: Sequence[str], cpu: int) -> shell.Completed:
    taskset = shell.require("taskset", package="util-linux")
    return shell.run([taskset, "--cpu-list", str(cpu), *words], timeout_s=_TIMEOUT_S)


def _positive(value: float, program: str) -> float:
    if not (math.isfinite(value) and value > 0):
        raise HostError(f"{program} measured {value}; this machine cannot be looked at")
    return value


def history(folder: Path) -> History[Look]:
    """Return the host's history of looks."""
    return History(folder / "canary.jsonl", Look)


def look(
    folder: Path,
    instrument: Instrument,
    *,
    moment: Moment,
    cpu: int,
    fingerprint: str,
    at: datetime,
    pause_s: float = PAUSE_S,
) -> tuple[CanaryReading, ...]:
    """Measure the canary, judge it by the host's history, and add it there.

    A figure that is not as usual is measured once more after a pause; the second value counts.

    Args:
        folder: The host's folder in the home.
        instrument: What measures.
        moment: When, relative to a job.
        cpu: The processor to measure on: one of the job's.
        fingerprint: Digest of the host's fingerprint.
        at: The time.
        pause_s: How long a burst of others' load is given to pass.

    Raises:
        HostError: A program failed.
    """
    past = [
        entry
        for entry in _since_accepted(history(folder).read())
        if (entry.fingerprint, entry.cpu) == (fingerprint, cpu)
    ][-HISTORY_USED:]
    values = dict(instrument.measure(list(instrument.units), cpu=cpu))
    again = [name for name, value in values.items() if _judged(name, value, past)[2]]
    if again:
        time.sleep(pause_s)
        values |= instrument.measure(again, cpu=cpu)
    readings = []
    for name, value in values.items():
        change, runs, suspicious = _judged(name, value, past)
        readings.append(
            CanaryReading(
                moment=moment,
                name=name,
                unit=instrument.units[name],
                value=value,
                change_percent=change,
                history=runs,
                suspicious=suspicious,
            )
        )
    entry = Look(taken_at=at, moment=moment, fingerprint=fingerprint, cpu=cpu, values=values)
    history(folder).append([entry])
    return tuple(readings)


def accept(folder: Path, *, at: datetime) -> None:
    """Begin a new past: what the host shows from now on is the usual."""
    entry = Look(taken_at=at, moment="accepted", fingerprint="", cpu=0, values={})
    history(folder).append([entry])


def unstable(readings: Sequence[CanaryReading]) -> str:
    """Return why a job with these readings cannot be trusted; empty when it can."""
    said = [
        f"{reading.name} {reading.moment} the job was {reading.value:.4g} {reading.unit}, "
        f"{reading.change_percent:+.1f} % from this host's last {reading.history} looks"
        for reading in readings
        if reading.suspicious
    ]
    return "the canary is not as usual: " + "; ".join(said) if said else ""


def noise(looks: Sequence[Look]) -> Mapping[str, float]:
    """Return the coefficient of variation of each figure over a history, in percent."""
    series: dict[str, list[float]] = {}
    for entry in looks:
        for name, value in entry.values.items():
            series.setdefault(name, []).append(value)
    return {
        name: float(100 * np.std(values, ddof=1) / np.mean(values))
        for name, values in series.items()
        if len(values) > 1
    }


def _since_accepted(looks: Sequence[Look]) -> Sequence[Look]:
    marks = [index for index, entry in enumerate(looks) if entry.moment == "accepted"]
    return looks[marks[-1] + 1 :] if marks else looks


def _judged(name: str, value: float, past: Sequence[Look]) -> tuple[float | None, int, bool]:
    """Return the change in percent, the runs behind it, and whether it is suspicious."""
    runs = [[[entry.values[name]]] for entry in past if name in entry.values]
    if len(runs) < HISTORY_MIN:
        return None, len(runs), False
    change = predict(runs, [[value]], confidence=CONFIDENCE)
    outside = change.interval.low > 0 or change.interval.high < 0
    suspicious = outside and abs(change.effect) >= CHANGE_MIN
    return 100 * math.expm1(change.effect), len(runs), suspicious
