"""Build failures: why a build came to no artifact, and whether that was the commit's fault or not.

How a step ended and what its log says come in, the error that says so goes out. A signal from
outside, no memory or no space is the machine's matter: the same commit may build a minute later.
Whatever else a build fails with is the commit's.
"""

from __future__ import annotations

import errno
import re
import signal
from typing import TYPE_CHECKING, Final

from runner import shell
from runner.errors import BuildError, InterruptedBuildError, StageError

if TYPE_CHECKING:
    from pathlib import Path

    from runner.build_systems import Step
    from workloads.plan import BuildVariant

#: Read from the end of a log for what was killed: with many compilers at once, those that go on
#: write a good deal behind it.
SIGNS_BYTES: Final = 1024 * 1024
#: What the kernel, an operator and a system that shuts down send; a program that fails by itself
#: ends by other signals.
_FROM_OUTSIDE: Final = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM})
#: Added to the number of a signal in the status of whatever waited for the program.
_SIGNALLED: Final = 128
#: What the watch over a sandbox says where the machine had no more to give, or less than promised.
_HOST_REASONS: Final = (
    "it used up its memory",
    "MiB of memory, the limit",
    "MiB of files in memory, the limit",
    "it left the machine less than",
    "were left free on the disk",
    # It is emptied when that happens, so that the next build has room.
    "it filled the folder ",
)
#: What compilers, linkers and builders say of a program that was killed under them, by what it is
#: called here. Each says it at the beginning of a line, or behind its own name.
_KILLED: Final = re.compile(
    r"(?:fatal error: (?:Killed|Terminated) signal terminated program"
    r"|internal compiler error: (?:Killed|Terminated) \(program"
    r"|error: unable to execute command: (?:Killed|Terminated)"
    r"|terminated with signal (?:9|15) \["
    r"|^(?:g|nix)?make(?:\[\d+\])?: \*\*\* .* (?:Killed|Terminated)$"
    r"|^(?:ba|da)?sh: .*\b\d+ (?:Killed|Terminated)\b"
    r"|^(?:Killed|Terminated)$"
    r"|^ninja: build stopped: interrupted by user)",
    re.MULTILINE,
)
_NO_MEMORY: Final = re.compile(
    r"(?:out of memory allocating \d+ bytes"
    r"|virtual memory exhausted"
    r"|LLVM ERROR: out of memory"
    r"|Cannot allocate memory"
    r"|terminate called after throwing an instance of 'std::bad_alloc')"
)
_NO_SPACE: Final = "No space left on device"
#: What programs say when a limit that the kernel keeps itself has stopped them.
_SIGNS: Final = {
    "File size limit exceeded": "FORKWATCH_SANDBOX_FILE_SIZE",
    "File too large": "FORKWATCH_SANDBOX_FILE_SIZE",
    _NO_SPACE: "FORKWATCH_SANDBOX_TMP_SIZE, or make room on the disk",
    "Too many open files": "FORKWATCH_SANDBOX_OPEN_FILES",
    "Resource temporarily unavailable": "FORKWATCH_SANDBOX_PROCESSES",
}
_FEWER_JOBS: Final = "give it more, or fewer compilers at once (FORKWATCH_BUILD_JOBS)"


def of_step(step: Step, done: shell.Completed, variant: BuildVariant, log: Path) -> BuildError:
    """Return the error of a step that failed."""
    tail = shell.tail(log)
    interrupted = _interrupted(done, log)
    if interrupted:
        return InterruptedBuildError(step.stage, f"{step.name} {interrupted}", tail)
    return BuildError(step.stage, _why(step, done, variant, tail), tail)


def without_room(error: OSError | StageError) -> InterruptedBuildError | None:
    """Return what a fault around a build comes to if the disk was full; None for any other."""
    if isinstance(error, StageError):
        if isinstance(error, BuildError) or _NO_SPACE not in error.log_tail:
            return None
        stage, tail = error.stage, error.log_tail
    elif error.errno in {errno.ENOSPC, errno.EDQUOT}:
        stage, tail = "build", ""
    else:
        return None
    return InterruptedBuildError(stage, f"{_NO_SPACE}; make room on the runner's disk", tail)


def _interrupted(done: shell.Completed, log: Path) -> str:
    """Return what the machine did to a step; an empty text where the step failed by itself."""
    if done.timed_out:
        # It may be slow for the machine's sake. But it has cost all the time that it may.
        return ""
    if done.stopped_by:
        by_host = any(reason in done.stopped_by for reason in _HOST_REASONS)
        return f"was ended: {done.stopped_by}" if by_host else ""
    name = _signal_from_outside(done.returncode)
    return f"was killed from outside ({name})" if name else _told(log)


def _told(log: Path) -> str:
    """Return what the log says that the machine did; an empty text where it says nothing of it."""
    said = shell.tail(log, bytes_max=SIGNS_BYTES)
    killed = _KILLED.search(said)
    if killed:
        words = killed.group().strip()
        return f"had a program killed from outside ({words}); if it was for memory, {_FEWER_JOBS}"
    lacking = _NO_MEMORY.search(said)
    if lacking:
        return f"found no memory ({lacking.group()}); {_FEWER_JOBS}"
    if _NO_SPACE in said:
        return f"failed: {_NO_SPACE}; if it needs more, raise {_SIGNS[_NO_SPACE]}"
    return ""


def _signal_from_outside(status: int) -> str:
    """Return the name of the signal that a status tells of, if it is one that comes from outside.

    A shell or bubblewrap in between adds 128 to its number, and Python gives it as a negative one.
    """
    number = -status if status < 0 else status - _SIGNALLED
    found = next((one for one in _FROM_OUTSIDE if one == number), None)
    return found.name if found is not None else ""


def _why(step: Step, done: shell.Completed, variant: BuildVariant, tail: str) -> str:
    if done.timed_out:
        return (
            f"{step.name} was not done within {variant.build_minutes_max} minutes; "
            "if it needs more, raise build_minutes_max of the build variant"
        )
    if done.stopped_by:
        return f"{step.name} was ended: {done.stopped_by}"
    for sign, setting in _SIGNS.items():
        if sign in tail:
            return f"{step.name} failed: {sign}; if it needs more, raise {setting}"
    return f"{step.name} failed with status {done.returncode}"
