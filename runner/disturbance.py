"""Disturbance: whether something outside the benchmark got in the way of a slice.

Readings of the kernel's accounts before and after a slice come in, a reason or nothing goes out.
Throughput is not among the readings and must never be: a rule that drops slow slices would make
every slow commit look fast.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NS: Final = 1_000_000_000
_US: Final = 1_000_000
_PRESSURES: Final = ("cpu", "io", "memory")
#: A clock id of the kernel for the CPU time of another process: linux/posix-timers.h, CPUCLOCK.
_SCHEDULER_CLOCK: Final = 2


class Limits(BaseModel):
    """The largest share of each disturbance in a quiet slice, in percent; None is not judged.

    What belongs to the workload itself is not judged before a calibration has measured it: on one
    shared core the server waits for its own client, and a writing workload for its own disk.
    The defaults are for hosts without a calibration: processor time is sampled in ticks, so that at
    250 Hz a slice of 2 s on two half-busy processors is uncertain by 3.2 % (one binomial standard
    deviation), and 10 % is three of them; steal was 0 to 1 % in quiet hours of docs/runner-host.md.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    steal: float | None = Field(default=2.0, ge=0)
    foreign: float | None = Field(default=10.0, ge=0)
    wait: float | None = Field(default=None, ge=0)
    pressure_cpu: float | None = Field(default=None, ge=0)
    pressure_io: float | None = Field(default=None, ge=0)
    pressure_memory: float | None = Field(default=1.0, ge=0)


#: What is said when a share is above its limit; the share comes first, the limit last.
_REASONS: Final = {
    "steal": "other guests had {:.1f} % of a measured processor (limit {:.1f} %)",
    "foreign": "other processes had {:.1f} % of a measured processor (limit {:.1f} %)",
    "wait": "the server waited {:.1f} % of the time for a processor (limit {:.1f} %)",
    "pressure_cpu": "tasks waited for processors {:.1f} % of the time (limit {:.1f} %)",
    "pressure_io": "all tasks waited for the disk {:.1f} % of the time (limit {:.1f} %)",
    "pressure_memory": "tasks waited for memory {:.1f} % of the time (limit {:.1f} %)",
}


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The accounts at one moment, in seconds since some beginning."""

    at_s: float
    #: Processors whose time is counted.
    cpus: int
    #: Time that processes had on the measured processors, and that other guests had.
    busy_s: float
    steal_s: float
    #: Time that our processes had: servers, spinners and clients that have ended.
    own_s: float
    #: Time that each thread of the servers has waited for a processor.
    wait_s: Mapping[int, float]
    #: Time in which tasks were held up, by what was short.
    pressure_s: Mapping[str, float]


def read(
    servers: Sequence[int],
    cpus: Sequence[int],
    *,
    spinners: Sequence[int] = (),
    proc: Path = Path("/proc"),
) -> Reading:
    """Return the accounts now.

    Args:
        servers: Process ids of the servers, the idle one's too.
        cpus: The measured processors; all where nothing is pinned.
        spinners: Process ids of what keeps processors awake; their waiting is what they are for.
        proc: Where the kernel shows its accounts.
    """
    busy_s, steal_s, counted = _processors(proc, set(cpus))
    return Reading(
        at_s=time.monotonic(),
        cpus=counted,
        busy_s=busy_s,
        steal_s=steal_s,
        own_s=_own([*servers, *spinners], set(cpus)),
        wait_s={thread: wait for pid in servers for thread, wait in _waits(proc, pid)},
        pressure_s={name: _pressure(proc, name) for name in _PRESSURES},
    )


def shares(before: Reading, after: Reading, *, client_s: float = 0.0) -> Mapping[str, float]:
    """Return each disturbance between two readings in percent of the time between them.

    `client_s` is CPU time of a client whose account was lost: the sandbox does not wait for it.

    Time of processors is in percent of one, however many were measured: one spoilt core of eight
    spoils the slice. The account of processors is kept in ticks, so a slice of 2 s is uncertain by
    about a percent.
    """
    passed = max(after.at_s - before.at_s, 1e-9)
    foreign = (after.busy_s - before.busy_s) - (after.own_s - before.own_s) - client_s
    waited = sum(waited - before.wait_s.get(thread, 0.0) for thread, waited in after.wait_s.items())
    grown = {
        "steal": after.steal_s - before.steal_s,
        "foreign": foreign,
        "wait": waited,
        **{
            f"pressure_{name}": held - before.pressure_s.get(name, 0.0)
            for name, held in after.pressure_s.items()
        },
    }
    return {name: max(0.0, 100 * seconds / passed) for name, seconds in grown.items()}


def judge(before: Reading, after: Reading, limits: Limits, *, client_s: float = 0.0) -> str:
    """Return why what ran between two readings was disturbed; an empty text when it was not."""
    return reason(shares(before, after, client_s=client_s), limits)


def reason(found: Mapping[str, float], limits: Limits) -> str:
    """Return which share is above its limit, in words; an empty text when none is."""
    for name, text in _REASONS.items():
        limit = getattr(limits, name)
        if limit is not None and found.get(name, 0.0) > limit:
            return text.format(found[name], limit)
    return ""


def _processors(proc: Path, wanted: set[int]) -> tuple[float, float, int]:
    """Return the time of processes and of other guests on processors, and how many these are."""
    tick = os.sysconf("SC_CLK_TCK")
    busy = steal = counted = 0
    for line in (proc / "stat").read_text().splitlines()[1:]:
        if not line.startswith("cpu"):
            break
        name, *values = line.split()
        if wanted and int(name[3:]) not in wanted:
            continue
        user, nice, system, _, _, _, _, stolen = (int(value) for value in values[:8])
        # Time of interrupts is left out: most of it is the benchmark's own.
        busy += user + nice + system
        steal += stolen
        counted += 1
    return busy / tick, steal / tick, counted


def _own(pids: Sequence[int], cpus: set[int]) -> float:
    """Return the CPU time of our processes, in seconds."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = ended.ru_utime + ended.ru_stime
    if not cpus or os.sched_getaffinity(0) & cpus:
        total += time.process_time()
    for pid in pids:
        # A server that is gone is noticed elsewhere.
        with contextlib.suppress(OSError):
            total += time.clock_gettime((~pid << 3) | _SCHEDULER_CLOCK)
    return total


def _waits(proc: Path, pid: int) -> list[tuple[int, float]]:
    """Return how long each thread of a process has waited for a processor."""
    found = []
    with contextlib.suppress(OSError):
        for thread in (proc / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):
                # Time on a processor, time waiting for one, turns.
                text = (thread / "schedstat").read_text()
                found.append((int(thread.name), int(text.split()[1]) / _NS))
    return found


def _pressure(proc: Path, name: str) -> float:
    """Return the time lost for want of something; 0 where the kernel keeps no such account."""
    # Disks: everything stood still, because single tasks wait for their own reads all the time.
    kind = "full" if name == "io" else "some"
    with contextlib.suppress(OSError, ValueError):
        for line in (proc / "pressure" / name).read_text().splitlines():
            if line.startswith(kind):
                return int(line.rpartition("total=")[2]) / _US
    return 0.0
