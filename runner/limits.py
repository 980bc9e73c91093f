"""Limits: how much of the machine code in a sandbox may use.

Comes in: the operator's settings. Goes out: one value that the sandbox, the warden and the cgroup
enforce, each the part that it can. A limit stands here with its reason; how it is enforced, and
what happens where the kernel lends no hand, is told in docs/sandbox.md.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB

#: Share of the machine's memory for everything inside one sandbox, its /tmp included: the rest is
#: the kernel's, the runner's and the client's.
MEMORY_SHARE: Final = 0.8
#: Share for /tmp alone: link-time optimisation and a server's sorts write gigabytes there.
TMP_SHARE: Final = 0.25
#: A server with 1024 clients has one thread for each; a build on 128 cores four processes (ccache,
#: driver, compiler, assembler) for each.
PROCESSES: Final = 4096
#: A debug server linked statically has about 2 GiB, a table of 200 million rows 48.
FILE_BYTES: Final = 64 * GIB
#: What MariaDB asks for with its largest table cache.
OPEN_FILES: Final = 65_536
#: Sources and a debug build of MySQL with its tests have about 30 GiB in 200 000 files.
DISK_BYTES: Final = 128 * GIB
DISK_ENTRIES: Final = 2_000_000
#: Every compiler's command line of a verbose build of MariaDB is about 30 MB.
LOG_BYTES: Final = 256 * MIB
#: The runner's documents, the system's logs and an operator's remedies need room when a build has
#: taken the rest.
DISK_RESERVE: Final = GIB


def machine_memory() -> int:
    """Return the machine's memory in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, kw_only=True)
class Limit:
    """One number with the setting that an operator raises it by."""

    value: int
    #: Name of the setting; empty where there is none to raise.
    setting: str = ""

    def advice(self) -> str:
        """Return what to do where honest work needs more."""
        return f"; if it needs more, raise {self.setting}" if self.setting else ""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What everything inside one sandbox may use together, where not said otherwise."""

    #: Bytes of memory, files in /tmp and /dev/shm included.
    memory: Limit
    #: Processes and threads.
    processes: Limit
    #: Bytes of a single file.
    file_bytes: Limit
    #: Open files of a single process.
    open_files: Limit
    #: Bytes that the writable folders may grow by.
    disk_bytes: Limit
    #: Files, folders and links that the writable folders may grow by.
    disk_entries: Limit
    #: Bytes in /tmp, and as many again in /dev/shm.
    tmp_bytes: Limit
    #: Bytes of output.
    log_bytes: Limit
    #: Bytes that stay free on the file systems of the writable folders.
    disk_reserve: Limit

    def resource_words(self) -> list[str]:
        """Return the words of `prlimit` for those limits that the kernel keeps per process."""
        words = ["prlimit", "--core=0:0"]
        for option, kind, value in (
            # Counted over all sandboxes of root: the warden ends the one that has too many before
            # the others feel it.
            ("nproc", resource.RLIMIT_NPROC, 2 * self.processes.value),
            ("fsize", resource.RLIMIT_FSIZE, self.file_bytes.value),
            ("nofile", resource.RLIMIT_NOFILE, self.open_files.value),
        ):
            soft, hard = (_lower(value, now) for now in resource.getrlimit(kind))
            words.append(f"--{option}={soft}:{hard}")
        return [*words, "--"]


def _lower(wanted: int, now: int) -> int:
    """Return the stricter of two limits: nobody may raise one that the machine set."""
    return wanted if now == resource.RLIM_INFINITY else min(wanted, now)


def limits(
    *,
    memory: int = 0,
    processes: int = PROCESSES,
    file_bytes: int = FILE_BYTES,
    open_files: int = OPEN_FILES,
    disk_bytes: int = DISK_BYTES,
    disk_entries: int = DISK_ENTRIES,
    tmp_bytes: int = 0,
    log_bytes: int = LOG_BYTES,
    disk_reserve: int = DISK_RESERVE,
) -> Limits:
    """Return limits by their numbers; 0 bytes of memory or /tmp are this machine's usual share."""
    return Limits(
        memory=Limit(
            value=memory or int(machine_memory() * MEMORY_SHARE), setting="FORKWATCH_SANDBOX_MEMORY"
        ),
        processes=Limit(value=processes, setting="FORKWATCH_SANDBOX_PROCESSES"),
        file_bytes=Limit(value=file_bytes, setting="FORKWATCH_SANDBOX_FILE_SIZE"),
        open_files=Limit(value=open_files, setting="FORKWATCH_SANDBOX_OPEN_FILES"),
        disk_bytes=Limit(value=disk_bytes, setting="FORKWATCH_SANDBOX_DISK_SIZE"),
        disk_entries=Limit(value=disk_entries, setting="FORKWATCH_SANDBOX_DISK_FILES"),
        tmp_bytes=Limit(
            value=tmp_bytes or int(machine_memory() * TMP_SHARE),
            setting="FORKWATCH_SANDBOX_TMP_SIZE",
        ),
        log_bytes=Limit(value=log_bytes, setting="FORKWATCH_SANDBOX_LOG_SIZE"),
        disk_reserve=Limit(value=disk_reserve, setting="FORKWATCH_DISK_RESERVE"),
    )
