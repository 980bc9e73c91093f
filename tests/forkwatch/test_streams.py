"""Tables that go into a file or a pipe keep each row on a line."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table

from forkwatch.streams import width_of

CELLS = ("workload-" + "x" * 150, "0.918", "a reason of many words " * 10)


class Terminal(io.StringIO):
    """A terminal as far as one can ask it."""

    def isatty(self) -> bool:
        return True


def printed(stream: io.StringIO) -> str:
    table = Table(box=None)
    for _ in CELLS:
        table.add_column(overflow="fold")
    table.add_row(*CELLS)
    Console(file=stream, soft_wrap=True, width=width_of(stream)).print(table)
    return stream.getvalue()


def test_a_row_in_a_pipe_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    (line,) = (line for line in printed(io.StringIO()).splitlines() if line.strip())

    assert [CELLS[0], CELLS[1], *CELLS[2].split()] == line.split()


def test_who_says_how_wide_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")

    assert all(len(line) <= 60 for line in printed(io.StringIO()).splitlines())


def test_a_terminal_is_asked_itself() -> None:
    assert width_of(Terminal()) is None
