"""Spinners: keep the measured processors awake while a benchmark runs on them.

An idle processor of a guest is given back to the hypervisor, and waking it takes tens of
microseconds that vary. A process that only runs when nothing else wants to (SCHED_IDLE) keeps it;
on bare metal a request to the kernel's power management does the same without a process. Both end
with the runner, however that ends.

`awake()` is the runner's side; `spinner.py` is one spinner.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runner import shell
from runner.errors import HostError
from runner.host.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DMA_LATENCY: Final = "/dev/cpu_dma_latency"
#: C1 wakes within this; deeper states do not (Linux, intel_idle.c). Zero would make idle siblings
#: of the measured cores poll, and take half of them.
LATENCY_US: Final = 2
_NICEST: Final = "19"
_GROUP_TRIES: Final = 10
_GROUP_PAUSE_S: Final = 0.11
_SPINNER: Final = Path(__file__).with_name("spinner.py")


@contextmanager
def awake(cpus: Sequence[int], machine: Machine | None = None) -> Iterator[tuple[int, ...]]:
    """Keep these processors awake inside the context; gives the process ids of the spinners.

    Raises:
        HostError: A spinner did not begin.
    """
    seen = machine or Machine()
    # Measured in a guest (docs/runner-host.md): the request changes nothing there, because the
    # processor that polls is still the hypervisor's to take.
    held = None if seen.virtualised() else _hold_latency(seen)
    if held is not None:
        try:
            yield ()
        finally:
            os.close(held)
        return
    with spinning(cpus) as pids:
        yield pids


def _hold_latency(machine: Machine) -> int | None:
    """Return an open request for quick wake-ups, or None where it is refused."""
    try:
        descriptor = os.open(machine.path(DMA_LATENCY), os.O_WRONLY)
    except OSError:
        return None
    try:
        # The request holds for as long as the file is open, so it cannot outlive us.
        os.write(descriptor, struct.pack("i", LATENCY_US))
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


@contextmanager
def spinning(cpus: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Run one spinner on each processor inside the context; gives their process ids.

    Raises:
        HostError: One may not run where it should.
    """
    words = [sys.executable, "-I", "-S", str(_SPINNER), str(os.getpid())]
    processes: list[shell.Process] = []
    try:
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123  a device, not a path of ours
            for cpu in dict.fromkeys(cpus):
                processes.append(shell.start(words, output=nowhere))
                _send(processes[-1].pid, cpu)
        yield tuple(process.pid for process in processes)
    finally:
        for process in processes:
            process.kill()


def _send(pid: int, cpu: int) -> None:
    """Make a process use nothing but the idle time of one processor."""
    try:
        os.sched_setaffinity(pid, {cpu})
        os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
    except OSError as error:
        raise HostError(f"processor {cpu} cannot be kept awake: {error.strerror}") from error
    _yield_group(pid)


def _yield_group(pid: int) -> None:
    """Make the scheduling group of a spinner's session count next to nothing.

    A session may be such a group, which counts in full however idle its members are: measured, a
    spinner took half of a processor from a busy process before this. Not every kernel has them.
    """
    for _ in range(_GROUP_TRIES):
        try:
            with open(f"/proc/{pid}/autogroup", "w") as group:  # noqa: PTH123  the kernel's
                group.write(_NICEST)
        except (BlockingIOError, PermissionError):
            # Ordinary users may do this ten times a second, all of them together; and for a moment
            # a process that has just begun may still count as somebody else's.
            time.sleep(_GROUP_PAUSE_S)
        except OSError:
            return
        else:
            return
