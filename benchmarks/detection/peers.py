"""The peers: other people's detectors, each in its own virtual environment, asked in batches.

An environment is made the first time a peer is asked, from its lock file with hashes, below
`.forkwatch/bench/`. One process answers one request about hundreds of series, through two JSON
files. Knows nothing of scoring.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runner import shell

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

ROOT: Final = Path(__file__).parents[2]
SCRIPTS: Final = ROOT / "benchmarks" / "peers"
#: Making an environment downloads packages; one was seen to take 20 s.
INSTALL_TIMEOUT_S: Final = 900
ASK_TIMEOUT_S: Final = 7200


class PeerError(Exception):
    """A peer could not be installed or asked; the message holds the end of what it said."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a detector found for each series, and how long all of it took."""

    found: list[Any]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A detector in an environment of its own, under one setting."""

    name: str
    #: Which lock file and which `ask_*.py` answer for it.
    environment: str
    setting: dict[str, Any] = field(default_factory=dict)

    def python(self) -> Path:
        """Return its interpreter, with its packages installed."""
        return installed(self.environment)

    def ask(self, **request: Any) -> Answer:
        """Ask for something that its script knows."""
        answer = exchange(self.environment, {"setting": self.setting, **request})
        return Answer(found=answer["found"], seconds=answer["seconds"])

    def changes(self, series: Sequence[NDArray[np.float64]]) -> Answer:
        """Return the changes of each whole series."""
        return self.ask(task="changes", series=as_lists(series))

    def looks(self, series: Sequence[NDArray[np.float64]], *, until_alarm: bool) -> Answer:
        """Return the changes found when each series is looked at after every commit."""
        series_lists = as_lists(series)
        return self.ask(task="looks", series=series_lists, first=2, until_alarm=until_alarm)

    def milliseconds(self, series: Sequence[NDArray[np.float64]], *, repeats: int) -> Answer:
        """Return the time that each whole series takes."""
        return self.ask(task="milliseconds", series=as_lists(series), repeats=repeats)


#: Defaults: window 50, p 0.001, no smallest change.
OTAVA: Final = Peer(name="Otava", environment="otava")
#: Linear kernel on logs, penalty 30 log n: what did best on the SAP HANA labels.
PELT: Final = Peer(name="PELT", environment="ruptures", setting={"penalty": 30.0})
SPA: Final = Peer(name="SPA", environment="spa")
BAYESECT: Final = Peer(name="git_bayesect", environment="bayesect")


def split(found: Sequence[Any], counts: Sequence[int]) -> list[list[Any]]:
    """Return an answer about several sets of series, asked at once, set by set.

    A peer's process takes seconds to import what it needs, so it is started as seldom as can be.
    """
    ends = list(itertools.accumulate(counts))
    return [list(found[end - count : end]) for end, count in zip(ends, counts, strict=True)]


def as_lists(series: Sequence[NDArray[np.float64]]) -> list[list[float]]:
    """Return the series as JSON has them."""
    return [[float(value) for value in values] for values in series]


def exchange(environment: str, request: dict[str, Any]) -> dict[str, Any]:
    """Ask a script inside an environment, through files.

    Raises:
        PeerError: It failed.
    """
    python = installed(environment)
    with tempfile.TemporaryDirectory(prefix="forkwatch-bench-") as folder:
        asked, told = Path(folder) / "request.json", Path(folder) / "answer.json"
        asked.write_text(json.dumps(request))
        words = [str(python), "-m", f"benchmarks.peers.ask_{environment}", str(asked), str(told)]
        done = shell.run(words, timeout_s=ASK_TIMEOUT_S, cwd=ROOT)
        if not done.ok:
            raise PeerError(f"{environment} failed: {done.stderr.strip()[-800:]}")
        answer: dict[str, Any] = json.loads(told.read_text())
        return answer


def installed(environment: str) -> Path:
    """Return the interpreter of an environment, made if its lock is newer than it."""
    folder = ROOT / ".forkwatch" / "bench" / environment
    lock = SCRIPTS / f"{environment}.lock"
    python, stamp = folder / "bin" / "python", folder / "made"
    if stamp.exists() and stamp.read_text() == lock.read_text():
        return python
    print(f"installing {environment} into {folder.relative_to(ROOT)}", file=sys.stderr)
    uv = str(Path(sys.executable).parent / "uv")
    for words in (
        [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)],
        [uv, "pip", "sync", "--quiet", "--python", str(python), "--require-hashes", str(lock)],
    ):
        done = shell.run(words, timeout_s=INSTALL_TIMEOUT_S)
        if not done.ok:
            raise PeerError(f"{environment} cannot be installed: {done.stderr.strip()[-800:]}")
    stamp.write_text(lock.read_text())
    return python
