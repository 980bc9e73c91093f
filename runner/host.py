"""Host: what the machine is, and which of its settings make results untrustworthy.

Only looks; changing settings is a person's decision.
"""

from __future__ import annotations

import platform
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from results.document import Host
from runner import sandbox

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Busy share of all processors that a quiet machine may have, in percent, and how long to look. The
#: load average would still count our own last job.
BUSY_MAX_PERCENT: Final = 20.0
BUSY_LOOK_S: Final = 0.5
DISK_FREE_MIN_BYTES: Final = 5 * 1024**3
#: Settings read as they are, for the run document.
_SETTINGS: Final = {
    "governor": "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "turbo_off": "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "smt": "/sys/devices/system/cpu/smt/control",
    "thp": "/sys/kernel/mm/transparent_hugepage/enabled",
    "aslr": "/proc/sys/kernel/randomize_va_space",
    "swappiness": "/proc/sys/vm/swappiness",
    "numa_balancing": "/proc/sys/kernel/numa_balancing",
    "clocksource": "/sys/devices/system/clocksource/clocksource0/current_clocksource",
}
_PROGRAMS: Final = {
    "git": "git",
    "cmake": "cmake",
    "ninja": "ninja-build",
    "ccache": "ccache",
    "gcc": "gcc",
    "g++": "g++",
    "sysbench": "sysbench",
    "bwrap": "bubblewrap",
    "taskset": "util-linux",
}


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing looked at."""

    name: str
    ok: bool
    found: str
    #: What to do when it is not ok.
    advice: str = ""
    #: Without it no job can run; otherwise results are merely noisier.
    fatal: bool = False


def describe(host_class: str) -> Host:
    """Return this machine as the run document records it."""
    settings = {name: text for name, path in _SETTINGS.items() if (text := _read(path))}
    warnings = tuple(f"{check.name}: {check.found}" for check in quiet_checks() if not check.ok)
    return Host(
        name=platform.node() or "unknown",
        host_class=host_class,
        cpu_model=_cpu_model(),
        logical_cpus=psutil.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        kernel=platform.release(),
        os=_os_name(),
        virtualised="hypervisor" in _cpu_flags(),
        settings=settings,
        warnings=warnings,
    )


def checks(home: Path) -> Sequence[Check]:
    """Return everything `forkwatch doctor` looks at."""
    found = [
        Check(
            name=program,
            ok=shutil.which(program) is not None,
            found=shutil.which(program) or "not installed",
            advice=f"apt-get install {package}",
            fatal=True,
        )
        for program, package in _PROGRAMS.items()
    ]
    fault = sandbox.works() if shutil.which("bwrap") else "bubblewrap is not installed"
    found.append(
        Check(
            name="sandbox",
            ok=not fault,
            found=fault or "bubblewrap works",
            advice="allow unprivileged user namespaces, or run as root",
            fatal=True,
        )
    )
    free = shutil.disk_usage(home).free
    found.append(
        Check(
            name="disk",
            ok=free >= DISK_FREE_MIN_BYTES,
            found=f"{free / 1024**3:.1f} GiB free at {home}",
            advice="free some space or choose another --home",
            fatal=True,
        )
    )
    return [*found, *quiet_checks()]


def quiet_checks() -> Sequence[Check]:
    """Return the checks of settings that make results noisy."""
    governor = _read(_SETTINGS["governor"])
    thp = _read(_SETTINGS["thp"])
    busy = psutil.cpu_percent(interval=BUSY_LOOK_S)
    cpus = psutil.cpu_count() or 1
    return [
        Check(
            name="governor",
            ok=governor in {"", "performance"},
            found=governor or "not visible here",
            advice="cpupower frequency-set --governor performance",
        ),
        Check(
            name="thp",
            ok="[always]" not in thp,
            found=thp or "not visible here",
            advice="echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        Check(
            name="cpus",
            ok=cpus > 1,
            found=f"{cpus} logical",
            advice="leave one processor to the system: use a machine with two or more",
        ),
        Check(
            name="load",
            ok=busy < BUSY_MAX_PERCENT,
            found=f"processors {busy:.0f} % busy before anything was started",
            advice="stop what else runs here; a build beside a measurement spoils it",
        ),
    ]


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _cpu_line(key: str) -> str:
    for line in _read("/proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return ""


def _cpu_model() -> str:
    return _cpu_line("model name") or platform.machine()


def _cpu_flags() -> Sequence[str]:
    return _cpu_line("flags").split()


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        return "unknown"
