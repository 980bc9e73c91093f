"""Checks: what is missing on this machine for jobs to run, and what makes their results noisy.

The machine and the home folder come in; checks go out, each with what was found and what to do
about it. Nothing is changed.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runner import sandbox
from runner.host import readings
from runner.host.knobs import KNOBS
from runner.host.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from runner.host.knobs import Knob

#: Busy share of all processors that a quiet machine may have, in percent, and how long to look. The
#: load average would still count our own last job.
BUSY_MAX_PERCENT: Final = 20.0
BUSY_LOOK_S: Final = 0.5
#: A guest that is denied more than this is visibly slower: the smallest gate is a few percent.
STEAL_MAX_PERCENT: Final = 1.0
#: Below the critical temperature by so much, processors of both vendors begin to throttle.
HEAT_MARGIN_C: Final = 10.0
DISK_FREE_MIN_BYTES: Final = 5 * 1024**3
#: Read without a system call on every processor that has them; others cost a microsecond a read,
#: twice for every query that a client times.
FAST_CLOCKS: Final = frozenset({"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "xen"})
#: Where the other side of a network or of another program decides how long a write takes.
REMOTE_FILESYSTEMS: Final = frozenset({"nfs", "nfs4", "cifs", "9p", "virtiofs", "fuse", "overlay"})
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


def checks(home: Path, machine: Machine | None = None) -> Sequence[Check]:
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
    return [*found, *storage_checks(home), *quiet_checks(machine)]


def storage_checks(home: Path) -> Sequence[Check]:
    """Return the checks of the disk that artifacts and datasets lie on."""
    free = shutil.disk_usage(home).free
    kind = readings.filesystem(home)
    reflink = "reflinks" if readings.reflinks(home) else "no reflinks: snapshots are copied"
    return [
        Check(
            name="disk",
            ok=free >= DISK_FREE_MIN_BYTES,
            found=f"{free / 1024**3:.1f} GiB free at {home}",
            advice="free some space or choose another --home",
            fatal=True,
        ),
        Check(
            name="filesystem",
            ok=kind not in REMOTE_FILESYSTEMS and not kind.startswith("fuse."),
            found=f"{kind or 'unknown'}, {reflink}",
            advice="keep the home on a local disk, best with xfs or btrfs",
        ),
    ]


def quiet_checks(machine: Machine | None = None, *, look_s: float = BUSY_LOOK_S) -> Sequence[Check]:
    """Return the checks of what makes results noisy.

    Args:
        machine: The host; this one where not given.
        look_s: For how long to watch what the processors do.
    """
    seen = machine or Machine()
    knobs = [knob_check(knob, seen) for knob in KNOBS]
    return [*knobs, _cpus(seen), _clock(seen), _heat(seen), *_use(seen, look_s)]


def knob_check(knob: Knob, machine: Machine) -> Check:
    """Return whether a knob is as wanted; one that the machine does not have is."""
    values = knob.read(machine)
    off = knob.off_target(machine)
    shown = _summary(list(values.values())) or "not visible here"
    if off and len(values) > 1:
        shown = f"{_summary([values[place] for place in off])} at {len(off)} of {len(values)}"
    advice = f"{knob.advice}; `forkwatch host tune --knob {knob.name}` changes it"
    return Check(name=knob.name, ok=not off, found=shown, advice=advice)


def _summary(values: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(values))


def _cpus(machine: Machine) -> Check:
    cpus = len(machine.online())
    return Check(
        name="cpus",
        ok=cpus > 1,
        found=f"{cpus} logical",
        advice="leave one processor to the system: use a machine with two or more",
    )


def _clock(machine: Machine) -> Check:
    clock = machine.text(readings.CLOCK)
    arm = clock.startswith("arch_")
    return Check(
        name="clocksource",
        ok=not clock or arm or clock in FAST_CLOCKS,
        found=clock or "not visible here",
        advice="reading the time is a system call; find in the kernel log why tsc was given up",
    )


def _heat(machine: Machine) -> Check:
    hottest = readings.hottest(machine)
    return Check(
        name="temperature",
        ok=hottest is None or hottest.celsius <= hottest.critical - HEAT_MARGIN_C,
        found=str(hottest) if hottest else "not visible here",
        advice="processors slow down when hot; let it cool, look at the fans",
    )


def _use(machine: Machine, look_s: float) -> Sequence[Check]:
    """Return what the processors did for a moment."""
    busy, steal = readings.busy_and_steal(machine, look_s=look_s)
    return [
        Check(
            name="load",
            ok=busy < BUSY_MAX_PERCENT,
            found=f"processors {busy:.0f} % busy before anything was started",
            advice="stop what else runs here; a build beside a measurement spoils it",
        ),
        Check(
            name="steal",
            ok=steal <= STEAL_MAX_PERCENT,
            found=f"{steal:.1f} % of the time other guests had our processors",
            advice="measure on a machine of one's own, or when its neighbours sleep",
        ),
    ]
