"""A CI in memory: it takes asks, has runs, and goes wrong in the ways that a CI goes wrong."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace

from service.core.dispatching import CiRun, CiRunState, DispatchRefusedError, RunAsk
from service.core.errors import DispatchError
from service.core.identity import CiSystem


class KilledError(BaseException):
    """The process ends here, as far as anybody can tell."""


@dataclass
class MemoryCi:
    """Satisfies the port `CiRunners`."""

    system: CiSystem = CiSystem.GITHUB
    #: Whether it says at once which run it began.
    tells: bool = True
    #: Every ask for a run that was heard, and the runs that came of them, oldest first.
    asks: list[RunAsk] = field(default_factory=list)
    runs: list[tuple[RunAsk, CiRun]] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    #: Goes on with each call: "" for well, otherwise what goes wrong with the next ask.
    #: `away` is not heard, `lost` is heard and not answered, `killed` is heard and the asker ends,
    #: `refused` is refused.
    mishaps: list[str] = field(default_factory=list)
    #: Runs are in no list yet.
    unlisted: bool = False
    #: Nothing is answered at all.
    away: bool = False
    #: Held while the runs change: some end by themselves.
    alone: threading.RLock = field(default_factory=threading.RLock)

    def begin(self, ask: RunAsk) -> CiRun | None:
        """Begin a run."""
        self._reach()
        mishap = self.mishaps.pop(0) if self.mishaps else ""
        if mishap == "away":
            raise DispatchError("the CI is away")
        if mishap == "refused":
            raise DispatchRefusedError("the CI has no such workflow")
        with self.alone:
            self.asks.append(ask)
            number = str(100 + len(self.runs))
            page = f"https://ci.example/{number}"
            run = CiRun(external_id=number, page=page, state=CiRunState.WAITING)
            self.runs.append((ask, run))
        if mishap == "lost":
            raise DispatchError("no answer")
        if mishap == "killed":
            raise KilledError
        return run if self.tells else None

    def find(self, ask: RunAsk) -> CiRun | None:
        """Return the first run of an ask."""
        self._reach()
        if self.unlisted:
            return None
        return next((run for asked, run in self.runs if asked.title == ask.title), None)

    def look(self, external_id: str) -> CiRun:
        """Return how a run is."""
        self._reach()
        return next(run for _, run in self.runs if run.external_id == external_id)

    def cancel(self, external_id: str) -> None:
        """End a run."""
        self._reach()
        self.cancelled.append(external_id)
        self.end(external_id, "cancelled")

    def end(self, external_id: str, how: str) -> None:
        """Let a run end."""
        with self.alone:
            self.runs = [
                (ask, replace(run, state=CiRunState.ENDED, how=how))
                if run.external_id == external_id
                else (ask, run)
                for ask, run in self.runs
            ]

    def last(self) -> str:
        """Return the newest run."""
        return self.runs[-1][1].external_id

    def _reach(self) -> None:
        if self.away:
            raise DispatchError("the CI is away")
