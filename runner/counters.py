"""Counters: what a slice cost the server process, the machine and the disk.

Read before and after each slice; a difference is the cost. CPU time of the server has the kernel's
tick of 10 ms, so that a slice of 3 s is known within 0.3 %. Context switches are summed over the
threads that live at both readings: servers keep the threads of past clients for reuse.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from results.document import Counters

if TYPE_CHECKING:
    from collections.abc import Sequence

_MICROSECONDS: Final = 1_000_000
_KIB: Final = 1024


@dataclass(frozen=True, kw_only=True)
class Reading:
    """All counters at one moment."""

    cpu_s: float
    #: (voluntary, involuntary) by thread id.
    switches: dict[int, tuple[int, int]]
    read_bytes: int
    write_bytes: int
    machine_busy_s: float
    machine_steal_s: float
    machine_total_s: float
    machine_switches: int
    device_reads: int
    device_read_bytes: int
    device_write_bytes: int


def device_of(folder: Path) -> str | None:
    """Return the name of the block device that holds `folder`, or None if there is none."""
    number = folder.stat().st_dev
    link = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    return link.resolve().name if link.exists() else None


def read(pids: Sequence[int], device: str | None) -> Reading:
    """Return the counters of these processes, the machine and a block device now."""
    cpu_s, read_bytes, write_bytes = 0.0, 0, 0
    switches: dict[int, tuple[int, int]] = {}
    for pid in pids:
        # A process that is gone has nothing to add; the server's end is noticed elsewhere.
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError, FileNotFoundError):
            process = psutil.Process(pid)
            used = process.cpu_times()
            moved = process.io_counters()
            cpu_s += used.user + used.system
            read_bytes += moved.read_bytes
            write_bytes += moved.write_bytes
            switches |= _thread_switches(pid)
    machine = psutil.cpu_times()
    disk = psutil.disk_io_counters(perdisk=True).get(device or "")
    return Reading(
        cpu_s=cpu_s,
        switches=switches,
        read_bytes=read_bytes,
        write_bytes=write_bytes,
        machine_busy_s=machine.user + machine.nice + machine.system,
        machine_steal_s=machine.steal,
        machine_total_s=sum(machine),
        machine_switches=psutil.cpu_stats().ctx_switches,
        device_reads=disk.read_count if disk else 0,
        device_read_bytes=disk.read_bytes if disk else 0,
        device_write_bytes=disk.write_bytes if disk else 0,
    )


def _thread_switches(pid: int) -> dict[int, tuple[int, int]]:
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            lines = (task / "status").read_text().splitlines()
            values = dict(line.split(":", 1) for line in lines[-2:])
            found[int(task.name)] = (
                int(values["voluntary_ctxt_switches"]),
                int(values["nonvoluntary_ctxt_switches"]),
            )
    return found


def between(before: Reading, after: Reading) -> Counters:
    """Return what happened between two readings."""
    total_s = max(after.machine_total_s - before.machine_total_s, 1e-9)
    voluntary = involuntary = 0
    for thread, (now_voluntary, now_involuntary) in after.switches.items():
        then_voluntary, then_involuntary = before.switches.get(thread, (0, 0))
        voluntary += now_voluntary - then_voluntary
        involuntary += now_involuntary - then_involuntary
    return Counters(
        server_cpu_us=_grown(before.cpu_s, after.cpu_s) * _MICROSECONDS,
        voluntary_switches=voluntary,
        involuntary_switches=involuntary,
        server_read_bytes=_grown(before.read_bytes, after.read_bytes),
        server_write_bytes=_grown(before.write_bytes, after.write_bytes),
        machine_cpu_percent=100 * _grown(before.machine_busy_s, after.machine_busy_s) / total_s,
        machine_switches=after.machine_switches - before.machine_switches,
        machine_steal_percent=100 * _grown(before.machine_steal_s, after.machine_steal_s) / total_s,
        device_reads=_grown(before.device_reads, after.device_reads),
        device_read_kib=_grown(before.device_read_bytes, after.device_read_bytes) / _KIB,
        device_write_kib=_grown(before.device_write_bytes, after.device_write_bytes) / _KIB,
    )


def _grown(before: float, after: float) -> float:
    """Return the growth of a counter; a counter that was reset has not shrunk below zero."""
    return max(0.0, after - before)
