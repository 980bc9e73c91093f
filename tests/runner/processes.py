"""What runs on this machine, and waiting for it to change."""

from __future__ import annotations

import contextlib
import time

import psutil


def servers(folder) -> list[psutil.Process]:
    """Return the database servers whose data or artifact lies below `folder` on the host."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or [""]
        in_sandbox = any(word.startswith("--datadir=/forkwatch/") for word in words)
        if (
            in_sandbox
            and "bwrap" not in words[0]
            and process.info["status"] != psutil.STATUS_ZOMBIE
        ):
            with contextlib.suppress(psutil.NoSuchProcess):
                # What is bound into a sandbox stands in the arguments of bubblewrap above it.
                around = [word for parent in process.parents() for word in parent.cmdline()]
                if any(word.startswith(str(folder)) for word in around):
                    found.append(process)
    return found


def until(condition, *, seconds: float = 120, pause: float = 0.02) -> None:
    """Wait until something is so; a failure if it never is."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(pause)
