"""What processes cost: the kernel's accounts of a server's processes and of their threads.

Process ids come in, a `Reading` goes out; what a slice cost is the difference of two. CPU time is
the processes' own clock: nanoseconds, ended threads included, where /proc/PID/stat has ticks of
10 ms and /proc/PID/schedstat the first thread alone.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: A clock id of the kernel for the CPU time of another process: linux/posix-timers.h, CPUCLOCK.
_SCHEDULER_CLOCK: Final = 2
#: Fields of /proc/PID/stat behind the name in brackets (proc(5) numbers them 10 and 12).
_MINOR_FAULTS, _MAJOR_FAULTS = 7, 9
#: The same of children that have ended and were waited for, and their time in ticks.
_CHILDRENS: Final = {_MINOR_FAULTS: 8, _MAJOR_FAULTS: 10}
_CHILDRENS_USER, _CHILDRENS_SYSTEM = 13, 14
_NS: Final = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class Thread:
    """The account of one thread."""

    #: None where the kernel has no schedstat.
    cpu_ns: int | None
    voluntary: int
    involuntary: int


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The accounts of all processes together at one moment."""

    cpu_ns: int
    #: The rest counts ended threads too, as the CPU time does.
    read_bytes: int
    write_bytes: int
    read_calls: int
    write_calls: int
    minor_faults: int
    major_faults: int
    #: Context switches are kept by the thread, and lost with it.
    threads: Mapping[int, Thread]


@dataclass(frozen=True, kw_only=True)
class Switches:
    """Context switches between two readings."""

    voluntary: int
    involuntary: int
    #: Share of the CPU time that was spent by the threads whose switches these are; the others
    #: ended before the second reading. None where it cannot be known.
    seen_percent: float | None


def read(pids: Sequence[int], *, proc: Path = Path("/proc")) -> Reading:
    """Return the accounts now; a process that is gone has nothing to add.

    A server may serve each client by a child of its own, which ends with it: children count too,
    the ended ones through whoever waited for them, in ticks of 10 ms.

    Args:
        pids: The server's processes.
        proc: Where the kernel shows its accounts.
    """
    cpu_ns, threads = 0, {}
    moved = dict.fromkeys(("read_bytes", "write_bytes", "syscr", "syscw"), 0)
    minor = major = 0
    for pid in family(pids, proc=proc):
        # The server's end is noticed elsewhere.
        with contextlib.suppress(OSError):
            folder = proc / str(pid)
            cpu_ns += time.clock_gettime_ns((~pid << 3) | _SCHEDULER_CLOCK)
            threads.update(_threads(folder / "task"))
            fields = _fields(folder)
            cpu_ns += _childrens_ns(fields)
            minor += fields[_MINOR_FAULTS] + fields[_CHILDRENS[_MINOR_FAULTS]]
            major += fields[_MAJOR_FAULTS] + fields[_CHILDRENS[_MAJOR_FAULTS]]
            # Of ended children too, once they were waited for.
            io = _numbers((folder / "io").read_text())
            moved = {name: value + io[name] for name, value in moved.items()}
    return Reading(
        cpu_ns=cpu_ns,
        read_bytes=moved["read_bytes"],
        write_bytes=moved["write_bytes"],
        read_calls=moved["syscr"],
        write_calls=moved["syscw"],
        minor_faults=minor,
        major_faults=major,
        threads=threads,
    )


def family(pids: Sequence[int], *, proc: Path = Path("/proc")) -> tuple[int, ...]:
    """Return these processes and all that live below them, each once."""
    found = dict.fromkeys(pids)
    todo = list(found)
    while todo:
        for task in _tasks(proc / str(todo.pop())):
            with contextlib.suppress(OSError):
                below = [int(pid) for pid in (task / "children").read_text().split()]
                todo += [pid for pid in below if pid not in found]
                found |= dict.fromkeys(below)
    return tuple(found)


def children_s(pids: Sequence[int], *, proc: Path = Path("/proc")) -> float:
    """Return the CPU time of these processes' children, living and ended, in seconds."""
    total = 0
    for pid in family(pids, proc=proc):
        with contextlib.suppress(OSError):
            total += _childrens_ns(_fields(proc / str(pid)))
            if pid not in pids:
                total += time.clock_gettime_ns((~pid << 3) | _SCHEDULER_CLOCK)
    return total / _NS


def _tasks(folder: Path) -> list[Path]:
    try:
        return list((folder / "task").iterdir())
    except OSError:
        return []


def _fields(folder: Path) -> dict[int, int]:
    """Return the numbers of a process' stat file by their place behind the name."""
    # The name may hold brackets and spaces of its own; the last bracket ends it.
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    return {place: int(field) for place, field in enumerate(fields) if place}


def _childrens_ns(fields: Mapping[int, int]) -> int:
    ticks = fields[_CHILDRENS_USER] + fields[_CHILDRENS_SYSTEM]
    return ticks * _NS // os.sysconf("SC_CLK_TCK")


def switches(before: Reading, after: Reading) -> Switches:
    """Return the context switches of the threads that are there at the second reading."""
    voluntary = involuntary = seen_ns = 0
    timed = True
    for number, now in after.threads.items():
        then = before.threads.get(number)
        # A number that was given to another thread meanwhile counts from its beginning.
        if then is None or then.voluntary > now.voluntary or then.involuntary > now.involuntary:
            then = Thread(cpu_ns=0, voluntary=0, involuntary=0)
        voluntary += now.voluntary - then.voluntary
        involuntary += now.involuntary - then.involuntary
        timed = timed and now.cpu_ns is not None
        seen_ns += (now.cpu_ns or 0) - (then.cpu_ns or 0)
    spent_ns = after.cpu_ns - before.cpu_ns
    share = None
    if timed and spent_ns > 0:
        # A thread that runs between the two looks makes it a little more than everything.
        share = round(min(100.0, max(0.0, 100 * seen_ns / spent_ns)), 3)
    return Switches(voluntary=voluntary, involuntary=involuntary, seen_percent=share)


def _threads(tasks: Path) -> dict[int, Thread]:
    found = {}
    for task in tasks.iterdir():
        # It may end while it is looked at.
        with contextlib.suppress(OSError, KeyError):
            status = _numbers((task / "status").read_text())
            found[int(task.name)] = Thread(
                cpu_ns=_on_processor(task),
                voluntary=status["voluntary_ctxt_switches"],
                involuntary=status["nonvoluntary_ctxt_switches"],
            )
    return found


def _on_processor(task: Path) -> int | None:
    try:
        return int((task / "schedstat").read_text().split()[0])
    except (OSError, IndexError):
        return None


def _numbers(text: str) -> dict[str, int]:
    """Return the plain numbers of a file of `name: value` lines."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {
        name: int(value)
        for name, _, value in pairs
        if value.strip().isascii() and value.strip().isdigit()
    }
