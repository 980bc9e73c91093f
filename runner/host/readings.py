"""Readings: what can be seen of a host but not set, as plain values.

The machine's files come in, numbers and words go out; whether they are good is for `checks`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from runner.host.machine import Machine

CLOCK: Final = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#: Where a sensor does not say which temperature is critical: usual for server processors.
CRITICAL_C: Final = 95.0
#: Sensors of processors; disks and batteries are hot at other temperatures.
_CPU_SENSORS: Final = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "x86_pkg_temp", "cpu")
#: ioctl that shares the blocks of one file with another (linux/fs.h).
_FICLONE: Final = 0x40049409


@dataclass(frozen=True, kw_only=True)
class Heat:
    """The hottest processor sensor, relative to its own limit."""

    sensor: str
    celsius: float
    critical: float

    def __str__(self) -> str:
        return f"{self.celsius:.0f} °C ({self.sensor}, critical at {self.critical:.0f})"


def hottest(machine: Machine) -> Heat | None:
    """Return the processor sensor nearest to its critical temperature, if there is any."""
    found = []
    for name in machine.names("/sys/class/hwmon/hwmon*/temp*_input"):
        sensor = machine.text(f"{name.rpartition('/')[0]}/name")
        found += _heat(machine, sensor, name, name.replace("_input", "_crit"))
    for name in machine.names("/sys/class/thermal/thermal_zone*/temp"):
        sensor = machine.text(f"{name.rpartition('/')[0]}/type")
        found += _heat(machine, sensor, name, "")
    return max(found, key=lambda heat: heat.celsius - heat.critical, default=None)


def _heat(machine: Machine, sensor: str, name: str, limit: str) -> list[Heat]:
    value = machine.number(name)
    if value is None or not sensor.startswith(_CPU_SENSORS):
        return []
    critical = machine.number(limit) if limit else None
    shown = critical / 1000 if critical else CRITICAL_C
    return [Heat(sensor=sensor, celsius=value / 1000, critical=shown)]


def busy_and_steal(machine: Machine, *, look_s: float) -> tuple[float, float]:
    """Return what share of all processors was busy, and stolen, for a moment; in percent."""
    busy, steal, total = _ticks(machine)
    time.sleep(look_s)
    busy_after, steal_after, total_after = _ticks(machine)
    passed = max(total_after - total, 1)
    return 100 * (busy_after - busy) / passed, 100 * (steal_after - steal) / passed


def _ticks(machine: Machine) -> tuple[int, int, int]:
    """Return busy, stolen and all ticks since boot; zeros where they are not visible."""
    first = machine.text("/proc/stat").partition("\n")[0].split()[1:9]
    if len(first) < 8:  # noqa: PLR2004  user nice system idle iowait irq softirq steal
        return 0, 0, 0
    user, nice, system, idle, iowait, irq, softirq, steal = (int(value) for value in first)
    busy = user + nice + system + irq + softirq
    return busy, steal, busy + steal + idle + iowait


def filesystem(folder: Path, mounts: str = "/proc/self/mounts") -> str:
    """Return the kind of file system that holds `folder`, or an empty text."""
    best, kind = -1, ""
    with contextlib.suppress(OSError):
        for line in Path(mounts).read_text().splitlines():
            _, point, name, *_ = line.split()
            # The kernel writes a blank in a path as \040.
            path = Path(point.encode().decode("unicode_escape"))
            if folder.resolve().is_relative_to(path) and len(path.parts) >= best:
                best, kind = len(path.parts), name
    return kind


def reflinks(folder: Path) -> bool:
    """Whether files in `folder` can share blocks, found by trying."""
    try:
        with (
            tempfile.TemporaryFile(dir=folder) as source,
            tempfile.TemporaryFile(dir=folder) as copy,
        ):
            source.write(b"\0" * os.sysconf("SC_PAGE_SIZE"))
            source.flush()
            fcntl.ioctl(copy.fileno(), _FICLONE, source.fileno())
    except OSError:
        return False
    return True
