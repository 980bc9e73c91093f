"""Watching a job: progress for people, on stderr.

`LogProgress` writes a line per event, for logs; `LiveProgress` draws a bar and the interval of each
workload as it narrows, for terminals.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Self

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from reports.markup import one_line
from reports.numbers import ratio, ratio_interval, ratio_of

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console

    from detectors.sequential import Look
    from results.document import Start
    from results.slice import Slice

_log = logging.getLogger("forkwatch.job")


class LogProgress:
    """One log line per event."""

    def stage(self, name: str, detail: str) -> None:
        """Log that a stage begins."""
        _log.info("%s: %s", name, detail)

    def piece(self, start: int, piece: Slice) -> None:
        """Log a slice."""
        _log.info(
            "start %d: %s %s %.6g ops/s",
            start + 1,
            piece.workload,
            piece.side,
            piece.throughput_ops_s,
        )

    def start(self, start: Start, *, of: int) -> None:
        """Log a complete start."""
        _log.info("start %d of at most %d done in %.1f s", start.index + 1, of, start.seconds)

    def look(self, workload: str, look: Look) -> None:
        """Log the evidence on one workload."""
        _log.info("%s", look_line(workload, look))


def look_line(workload: str, look: Look) -> str:
    """Return the evidence on one workload as a line: relative throughput, interval, what next."""
    change = look.change
    return (
        f"{one_line(workload)}: {ratio(ratio_of(change.effect))} "
        f"({ratio_interval(change.interval)}), {look.stop.value}"
    )


class LiveProgress:
    """A bar over the starts, with the newest numbers beside it."""

    def __init__(self, console: Console, *, slices_per_start: int) -> None:
        self._slices = slices_per_start
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[news]}", markup=False),
            TimeElapsedColumn(),
        )
        self._task = self._bar.add_task("prepare", total=None, news="")
        self._looks: dict[str, str] = {}
        self._live = Live(self._bar, console=console, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def stage(self, name: str, detail: str) -> None:
        """Show the stage."""
        self._bar.update(self._task, description=name, news=detail)

    def piece(self, start: int, piece: Slice) -> None:
        """Show the newest number."""
        del start  # The stage's text names it.
        news = f"{piece.workload} {piece.side}: {piece.throughput_ops_s:,.6g} ops/s"
        self._bar.update(self._task, advance=1, news=news)

    def start(self, start: Start, *, of: int) -> None:
        """Set the bar to the completed starts."""
        done = (start.index + 1) * self._slices
        self._bar.update(self._task, total=of * self._slices, completed=done)

    def look(self, workload: str, look: Look) -> None:
        """Show the interval as it is now."""
        self._looks[workload] = look_line(workload, look)
        self._live.update(Group(self._bar, *(Text(line) for line in self._looks.values())))
