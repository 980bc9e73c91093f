"""Process 1 of a sandbox that has ended: waits until the kernel has ended all that was inside.

bubblewrap's own process ends as soon as it knows how the program inside ended. Process 1, and with
it whatever the program left behind, dies some milliseconds later.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Lower numbers may stand for something in the shell words that start a sandbox.
_DESCRIPTOR_MIN: Final = 10
#: bubblewrap writes some hundred bytes.
_REPORT_BYTES_MAX: Final = 4096


@contextmanager
def awaited(timeout_s: float) -> Iterator[int]:
    """Give a descriptor for bubblewrap's `--info-fd`; wait for the end of process 1 on leaving.

    Whoever leaves the context has seen bubblewrap's own process end.

    Args:
        timeout_s: Nothing is waited for longer; what still runs then is the watchdog's.
    """
    read_end, low = os.pipe()
    write_end = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _DESCRIPTOR_MIN)
    os.close(low)
    os.set_blocking(read_end, False)
    try:
        yield write_end
        _wait(_number(read_end), timeout_s)
    finally:
        os.close(read_end)
        os.close(write_end)


def _number(read_end: int) -> int | None:
    """Return the number of process 1 as bubblewrap told it; None where it came to none."""
    try:
        told = json.loads(os.read(read_end, _REPORT_BYTES_MAX))
        return int(told["child-pid"])
    except (BlockingIOError, ValueError, KeyError):
        return None


def _wait(number: int | None, timeout_s: float) -> None:
    if number is None:
        return
    try:
        handle = os.pidfd_open(number)
    except ProcessLookupError:
        return
    try:
        if _is_first(number):
            # The kernel says so of process 1 after everything else inside has ended.
            select.select([handle], [], [], timeout_s)
    finally:
        os.close(handle)


def _is_first(number: int) -> bool:
    """Return whether this is process 1 of some namespace: by now the number may be another's."""
    try:
        lines = Path(f"/proc/{number}/status").read_text().splitlines()
    except OSError:
        return False
    numbers = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])
    return len(numbers) > 1 and numbers[-1] == "1"
