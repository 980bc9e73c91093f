"""Counters of the processor: instructions, cycles and misses of the server, by `perf stat`.

Many virtual machines have no PMU, many hosts forbid it, and not everybody has perf; `missing` finds
out once and says why. A slice never fails for want of these.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Final

from runner import shell
from runner.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: perf's names and ours. User code only: that is what a fork changes, and what may be counted
#: without being root (perf_event_paranoid 2).
EVENTS: Final = {
    "instructions:u": "instructions",
    "cycles:u": "cycles",
    "branch-misses:u": "branch_misses",
    "LLC-load-misses:u": "llc_load_misses",
}
#: Fields of `perf stat -x,` (its manual, CSV FORMAT): value, unit, event.
_VALUE, _EVENT = 0, 2
_TIMEOUT_S: Final = 20
#: perf opens its counters within some milliseconds, and has no word for when it has.
_ATTACH_S: Final = 0.3


@cache
def missing() -> str:
    """Return why this machine has no hardware counters; empty where it has instructions."""
    try:
        words = [_perf(), "stat", "--field-separator=,", "--event=instructions:u", "true"]
    except HostError as error:
        return str(error)
    done = shell.run(words, timeout_s=_TIMEOUT_S)
    if "instructions" in parse(done.stderr):
        return ""
    if not done.ok:
        said = shell.readable(done.stderr).strip().partition("\n")[0]
        return f"perf cannot count here: {said}; see /proc/sys/kernel/perf_event_paranoid"
    return "this machine shows no hardware counters, as is usual for virtual machines"


def _perf() -> str:
    return shell.require("perf", package="linux-perf")


@contextmanager
def counting(
    pids: Sequence[int], *, events: Sequence[str] = tuple(EVENTS)
) -> Iterator[dict[str, float]]:
    """Count events of these processes in the block; the mapping is filled when it ends.

    It stays empty where nothing can be counted.
    """
    found: dict[str, float] = {}
    if not pids:
        yield found
        return
    chosen = [word for event in events for word in ("--event", event)]
    watched = ",".join(str(pid) for pid in pids)
    words = [_perf(), "stat", "--field-separator=,", *chosen, "--pid", watched]
    with tempfile.TemporaryFile() as output:
        process = shell.start(words, output=output)
        try:
            time.sleep(_ATTACH_S)
            yield found
            # It prints at an interrupt; at any other signal it just ends.
            if process.poll() is None:
                os.kill(process.pid, signal.SIGINT)
                process.wait(_TIMEOUT_S)
        finally:
            process.kill()
        output.seek(0)
        found |= parse(output.read(shell.OUTPUT_BYTES_MAX).decode(errors="replace"))


def parse(text: str) -> dict[str, float]:
    """Return the counts in the output of `perf stat -x,`; what was not counted is left out."""
    found = {}
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) <= _EVENT:
            continue
        try:
            value = float(fields[_VALUE])
        except ValueError:
            # "<not supported>" or "<not counted>".
            continue
        event = fields[_EVENT]
        found[EVENTS.get(event, event.partition(":")[0].replace("-", "_"))] = value
    return found
