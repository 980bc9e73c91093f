"""Profiles: where a server spends its time, sampled by `perf record`, and how two profiles differ.

Process ids come in, folded stacks and a flame graph in one SVG file go out. Where the processor
has no counters the kernel's clock is sampled. Binaries and their names are hostile: stacks are
named inside the sandbox, and every name is bounded and escaped.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import TYPE_CHECKING, Final

from runner import shell
from runner.counters import hardware
from runner.errors import ClientError, HostError
from runner.sandbox import INSIDE, Bind, Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

#: Not a divisor of the kernel's tick or of a round rate, so that nothing periodic is always met at
#: the same point. 10 s give 2000 samples of a busy thread: a function of 5 % within 0.5 % (one
#: standard deviation).
FREQUENCY_HZ: Final = 199
_TIMEOUT_S: Final = 120
#: perf opens its counters within some milliseconds, and has no word for when it has.
_ATTACH_S: Final = 0.3
#: The kernel's own default limit of a stack's depth.
DEPTH_MAX: Final = 127
NAME_LENGTH_MAX: Final = 200
#: A thousand busy threads write about 2 MB a second.
_FILE_MAX: Final = "256M"
_STACKS_MAX: Final = 100_000
#: A frame of `perf script`: address, symbol, and the object in brackets at the end.
_FRAME: Final = re.compile(r"\s+[0-9a-f]+ (.*) \((.*)\)")


@cache
def missing() -> str:
    """Return why this machine cannot take profiles; empty where it can."""
    with TemporaryDirectory(prefix="forkwatch-") as folder:
        try:
            words = [*_record_words(Path(folder) / "probe"), "true"]
        except HostError as error:
            return str(error)
        done = shell.run(words, timeout_s=_TIMEOUT_S)
    if done.ok:
        return ""
    said = shell.readable(done.stderr).strip().partition("\n")[0]
    return f"perf cannot take profiles here: {said}; see /proc/sys/kernel/perf_event_paranoid"


def event() -> str:
    """Return what profiles sample here: cycles, or the kernel's clock where nobody counts those."""
    return "cpu-clock" if hardware.missing() else "cycles"


def _record_words(file: Path) -> list[str]:
    # Only root may always look into the kernel.
    sampled = event() + ("" if os.geteuid() == 0 else ":u")
    words = [shell.require("perf", package="linux-perf"), "record", f"--output={file}"]
    words += [f"--event={sampled}", f"--freq={FREQUENCY_HZ}", "-g"]
    # Otherwise perf itself, outside the sandbox, reads every binary that it met.
    return [*words, "--no-buildid", "--no-buildid-cache", f"--max-size={_FILE_MAX}"]


@contextmanager
def recording(pids: Sequence[int], file: Path) -> Iterator[None]:
    """Take a profile of these processes into `file` while the block runs.

    Raises:
        HostError: This machine cannot; says why.
    """
    if missing():
        raise HostError(missing())
    watched = ",".join(str(pid) for pid in pids)
    words = [*_record_words(file), "--pid", watched]
    with TemporaryFile() as output:
        process = shell.start(words, output=output)
        try:
            time.sleep(_ATTACH_S)
            yield
            # perf completes its file at an interrupt.
            if process.poll() is None:
                os.kill(process.pid, signal.SIGINT)
                process.wait(_TIMEOUT_S)
        finally:
            process.kill()


def stacks(file: Path, artifact: Path) -> Mapping[str, int]:
    """Return the samples of a profile by folded stack: names from the outermost in, by semicolon.

    Args:
        file: What `recording` wrote.
        artifact: The folder whose programs were running.

    Raises:
        ClientError: perf could not read the profile; carries what it said.
    """
    file.chmod(0o644)
    binds = (Bind(host=artifact, inside="artifact"), Bind(host=file, inside="profile"))
    words = [shell.require("perf", package="linux-perf"), "script", "--force", "--no-inline"]
    words += [f"--input={INSIDE}/profile", "--fields=comm,tid,event,ip,sym,dso"]
    done = Sandbox(binds=binds).run(words, timeout_s=_TIMEOUT_S)
    if not done.ok:
        said = shell.readable(done.stderr[-shell.TAIL_BYTES :])
        raise ClientError("measure", "the profile could not be read", said)
    return fold(done.stdout.splitlines())


def fold(lines: Iterable[str]) -> dict[str, int]:
    """Return the samples by folded stack in the output of `perf script`."""
    found: Counter[str] = Counter()
    frames: list[str] = []
    for line in (*lines, ""):
        frame = _FRAME.fullmatch(line.rstrip())
        if frame:
            name = _name(*frame.groups())
            # Frames without symbols, such as the kernel's in the sandbox, are one box.
            if not (frames and name.startswith("[") and frames[-1] == name):
                frames.append(name)
        elif frames:
            # perf prints the innermost frame first.
            stack = ";".join(reversed(frames[:DEPTH_MAX]))
            if stack in found or len(found) < _STACKS_MAX:
                found[stack] += 1
            frames = []
    return dict(found)


def _name(symbol: str, place: str) -> str:
    """Return a frame's name; what has no symbol is named by its object."""
    name = symbol if symbol != "[unknown]" else f"[{Path(place.strip('[]')).name}]"
    plain = shell.readable(name).replace(";", ":").replace("\n", " ")
    return plain[:NAME_LENGTH_MAX]
