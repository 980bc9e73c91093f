"""The warden: measures what a running sandbox uses, and names the limit that it has passed.

Comes in: the sandbox's process, its writable folders and its limits. Goes out: an empty text, or
why everything inside has to be killed. It looks through the sandbox's own /proc, where exactly the
processes inside are to be seen, and never follows a path that code inside could have put there.
Looking costs at most one fiftieth of a processor: it looks less often where a look takes longer.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runner import leavings, shell
from runner.limits import KIB, MIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from runner.cgroup import Cgroup
    from runner.limits import Limit, Limits
    from runner.shell import Process

#: Pause while measuring: a server's use changes slowly, and its processor is not ours to take.
SERVER_LOOK_S: Final = 0.5
#: The writable folders are looked through in steps of this length, one with each look.
SURVEY_STEP_S: Final = 0.002
#: The same when the disk fills faster than by half of what is left.
SURVEY_IN_DOUBT_S: Final = 0.05
#: Pause between surveys, and before the first: most builds of a tiny fork are done by then.
SURVEY_PAUSE_S: Final = 5.0
FIRST_SURVEY_S: Final = 5.0
#: Folders of the sandbox that are memory.
_MEMORY_FOLDERS: Final = ("tmp", "dev/shm", "var/tmp", "run")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
#: Fields of /proc/PID/stat counted from behind the name, which may contain anything.
_THREADS, _RSS = 17, 21
#: Unit of st_blocks, whatever the file system's own is.
_BLOCK: Final = 512
#: A tmpfs with less free than this has refused something.
_TMP_FULL: Final = 64 * 1024
#: Free memory of the whole machine below which the sandbox goes before the kernel has to choose.
_MEMORY_RESERVE: Final = 128 * MIB


class Warden:
    """Looks at one sandbox, again and again."""

    def __init__(
        self,
        limits: Limits,
        folders: Sequence[Path],
        *,
        counts_all: bool = False,
        ceilings: Mapping[Path, int] | None = None,
        log: Path | None = None,
        own: Cgroup | None = None,
    ) -> None:
        """Remember what to look at.

        Args:
            limits: What may be used.
            folders: The writable folders.
            counts_all: Whether what lies in them already counts as well.
            ceilings: Further writable folders, with the bytes that each may hold in all.
            log: A file that gets all output, where nobody else bounds that.
            own: The sandbox's cgroup, where there is one: it counts memory and processes better.
        """
        self._limits, self.own, self._log = limits, own, log
        self._folders = tuple(folders)
        self._ceilings = dict(ceilings or {})
        nothing = leavings.Size(bytes=0, entries=0)
        self._at_first = nothing if counts_all else leavings.size(*self._folders)
        self._known = self._at_first
        self._free_then = self._free()
        self._survey: leavings.Survey | None = None
        #: The same of those folders with a ceiling of their own.
        self._surveys: dict[Path, leavings.Survey] = {}
        self._survey_at = time.monotonic() + FIRST_SURVEY_S
        self._root: Path | None = None

    def look(self, outer: int) -> str:
        """Return which limit the sandbox around process `outer` has passed, or an empty text."""
        if self._root is None:
            inner = inner_process(outer)
            self._root = Path(f"/proc/{inner}/root") if inner else None
        if self._root is None:
            return ""
        try:
            return next(self._findings(self._root), "")
        except OSError:
            # It ended under our eyes.
            return ""

    def _findings(self, root: Path) -> Iterator[str]:
        yield from self._memory_folders(root)
        if self.own is None:
            yield from self._processes(root)
        elif self.own.reason():
            yield self.own.reason()
        limit = self._limits.log_bytes
        if self._log is not None and self._log.stat().st_size > limit.value:
            yield f"{shell.OUTPUT_FULL}{limit.advice()}"
        yield from self._disks(root)

    def _memory_folders(self, root: Path) -> Iterator[str]:
        _, entries, full = _in_memory(root)
        if full:
            yield f"it filled its /{full}{self._limits.tmp_bytes.advice()}"
        if entries > self._limits.disk_entries.value:
            yield _passed(f"{entries} files in memory", self._limits.disk_entries)

    def _processes(self, root: Path) -> Iterator[str]:
        threads = resident = 0
        pids = _pids(root)
        for pid in pids:
            fields = _stat_fields(root, pid)
            if fields:
                threads += int(fields[_THREADS])
                resident += int(fields[_RSS]) * _PAGE
        if threads >= self._limits.processes.value:
            yield _passed(f"{threads} processes and threads", self._limits.processes)
        limit = self._limits.memory
        folders, _, _ = _in_memory(root)
        if resident + folders > limit.value:
            # Pages that several processes share were counted once for each. The kernel knows
            # better, but takes longer to say.
            used = sum(_proportional(root, pid) for pid in pids) + folders
            if used > limit.value:
                yield _passed(f"{_mib(used)} of memory", limit, shown=_mib(limit.value))
        if _available_memory() < _MEMORY_RESERVE:
            yield f"it left the machine less than {_mib(_MEMORY_RESERVE)} of memory"

    def _disks(self, root: Path) -> Iterator[str]:
        """Look into the folders when they may have grown much, and now and then in any case."""
        reserve, free = self._limits.disk_reserve, self._free()
        if free[0] < reserve.value:
            yield f"less than {_mib(reserve.value)} were left free on the disk; make room there"
        allowed = self._limits.disk_bytes.value, self._limits.disk_entries.value
        grown = self._growth()
        # Others write on the same file system too: a shrinking one only says where to look.
        shrunk = any(
            then - now > (most - used) / 2
            for then, now, most, used in zip(self._free_then, free, allowed, grown, strict=True)
        )
        if self._survey is None and (shrunk or time.monotonic() > self._survey_at):
            self._free_then = free
            self._survey = leavings.Survey(self._folders)
            for folder in self._ceilings:
                self._surveys.setdefault(folder, leavings.Survey([folder]))
        step_s = SURVEY_IN_DOUBT_S if shrunk else SURVEY_STEP_S
        yield from self._full_folders(step_s)
        if self._survey is None:
            return
        found = self._survey.step(step_s)
        if found is None:
            return
        self._survey, self._known = None, found
        self._survey_at = time.monotonic() + SURVEY_PAUSE_S
        yield from self._sizes(root)

    def _sizes(self, root: Path) -> Iterator[str]:
        unlinked, in_memory = _unlinked(root)
        grown_bytes, grown_entries = self._growth()
        for used, limit, what in (
            (grown_bytes + unlinked, self._limits.disk_bytes, "on disk"),
            (in_memory, self._limits.memory, "of files in memory"),
        ):
            if used > limit.value:
                yield _passed(f"{_mib(used)} {what}", limit, shown=_mib(limit.value))
        if grown_entries > self._limits.disk_entries.value:
            yield _passed(f"{grown_entries} files on disk", self._limits.disk_entries)
        if self._known.too_deep:
            yield f"it made folders more than {leavings.DEPTH_MAX} deep"

    def _full_folders(self, step_s: float) -> Iterator[str]:
        for folder, survey in tuple(self._surveys.items()):
            found = survey.step(step_s)
            if found is not None:
                del self._surveys[folder]
                ceiling = self._ceilings[folder]
                if found.bytes > ceiling:
                    yield f"it filled the folder {folder.name}, which may have {_mib(ceiling)}"

    def _growth(self) -> tuple[int, int]:
        return (
            self._known.bytes - self._at_first.bytes,
            self._known.entries - self._at_first.entries,
        )

    def _free(self) -> tuple[int, int]:
        """Return free bytes and inodes, the least of all folders; much where there are none."""
        found = [os.statvfs(folder) for folder in (*self._folders, *self._ceilings)]
        return (
            min((part.f_bavail * part.f_frsize for part in found), default=1 << 62),
            # Some file systems make inodes as they need them and say 0.
            min((part.f_favail for part in found if part.f_files), default=1 << 62),
        )


def inner_process(outer: int) -> int | None:
    """Return process 1 of the sandbox around `outer` as the host numbers it."""
    try:
        children = Path(f"/proc/{outer}/task/{outer}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if not children:
        return None
    inner = int(children[0])
    root = Path(f"/proc/{inner}/root")
    try:
        # Until bubblewrap has changed its root, that is the host's.
        ours = root.stat().st_dev == Path("/").stat().st_dev
        return inner if not ours and (root / "proc" / "1").exists() else None
    except OSError:
        return None


def end(process: Process) -> None:
    """Kill everything in a sandbox and return when nothing of it runs any more."""
    inner = inner_process(process.pid)
    if inner is not None:
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(inner)
            try:
                # Its number could be somebody else's by now; the handle could not.
                if inner_process(process.pid) == inner:
                    # The kernel lets process 1 end only after everything else inside has.
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
            finally:
                os.close(handle)
        process.wait(END_S)
    process.kill()


#: For thousands of processes to end; a fork bomb of 4096 took 0.4 s.
END_S: Final = 20.0


class Verdicts:
    """What ended a running server, asked while it runs or just after."""

    def __init__(self, own: Cgroup | None) -> None:
        self._own = own
        self.found = ""

    def reason(self) -> str:
        """Return which limit it has passed, or an empty text."""
        return self.found or (self._own.reason() if self._own else "")


@contextmanager
def watching(process: Process, warden: Warden) -> Iterator[Verdicts]:
    """Have a sandbox that goes on running watched beside us, and killed past its limits."""
    verdicts, done = Verdicts(warden.own), threading.Event()

    def watch() -> None:
        pause_s = SERVER_LOOK_S
        while not done.wait(pause_s):
            began = time.thread_time()
            verdicts.found = warden.look(process.pid)
            if verdicts.found:
                end(process)
                return
            pause_s = max(SERVER_LOOK_S, shell.PAUSE_FACTOR * (time.thread_time() - began))

    thread = threading.Thread(target=watch, name="warden", daemon=True)
    thread.start()
    try:
        yield verdicts
    finally:
        done.set()
        thread.join()
        # The cgroup, which knows as well, is about to be removed.
        verdicts.found = verdicts.reason()


def _pids(root: Path) -> list[str]:
    return [name for name in os.listdir(root / "proc") if name.isdigit()]  # noqa: PTH208  only names


def _stat_fields(root: Path, pid: str) -> list[str]:
    with contextlib.suppress(OSError):
        text = (root / "proc" / pid / "stat").read_text(errors="replace")
        return text.rpartition(")")[2].split()
    return []


def _proportional(root: Path, pid: str) -> int:
    """Return a process' memory, swapped or not, with its part of what it shares."""
    try:
        lines = (root / "proc" / pid / "smaps_rollup").read_text().splitlines()
    except OSError:
        # Not shown: then everything it shares is its own.
        fields = _stat_fields(root, pid)
        return int(fields[_RSS]) * _PAGE if fields else 0
    wanted = [line.split()[1] for line in lines if line.startswith(("Pss:", "SwapPss:"))]
    return sum(int(count) for count in wanted) * KIB


def _in_memory(root: Path) -> tuple[int, int, str]:
    """Return bytes and files in the folders that are memory, and the name of one that is full."""
    total, entries, full = 0, 0, ""
    for name in _MEMORY_FOLDERS:
        with contextlib.suppress(OSError):
            part = os.statvfs(root / name)
            entries += part.f_files - part.f_ffree
            total += (part.f_blocks - part.f_bfree) * part.f_frsize
            if part.f_bfree * part.f_frsize < min(_TMP_FULL, part.f_blocks * part.f_frsize // 8):
                full = name
    return total, entries, full


def _unlinked(root: Path) -> tuple[int, int]:
    """Return the bytes of open files without a name: on disk, and in memory."""
    seen: set[tuple[int, int]] = set()
    on_disk = in_memory = 0
    for pid in _pids(root):
        folder = root / "proc" / pid / "fd"
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):  # noqa: PTH208  only names
                with contextlib.suppress(OSError):
                    facts = os.stat(folder / name)  # noqa: PTH116  a descriptor of another
                    key = (facts.st_dev, facts.st_ino)
                    if facts.st_nlink or not stat.S_ISREG(facts.st_mode) or key in seen:
                        continue
                    seen.add(key)
                    # Major number 0: no device, as of memfd and tmpfs. Those of /tmp are counted
                    # there already; twice is on the safe side.
                    if os.major(facts.st_dev):
                        on_disk += facts.st_blocks * _BLOCK
                    else:
                        in_memory += facts.st_blocks * _BLOCK
    return on_disk, in_memory


def _available_memory() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * KIB
    return 1 << 62


def _passed(used: str, limit: Limit, *, shown: str = "") -> str:
    return f"it used {used}, the limit is {shown or limit.value}{limit.advice()}"


def _mib(count: int) -> str:
    return f"{count / MIB:.0f} MiB"
