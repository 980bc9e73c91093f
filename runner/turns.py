"""Turns: two clients at work, one of them with its server for a fraction of a second at a time.

Servers and the command lines of their clients come in, what each client said and how long it was
its turn go out. Who is not at work is stopped, its server as well. A host whose speed wanders over
seconds then slows both alike, which slices one after the other cannot have (docs/measuring.md).
"""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runner import counters, shell
from runner.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

#: How often a client that starts is looked at; its first turn is uncertain by so much.
_POLL_S: Final = 0.0005
#: A client that has not begun by then will not: it connects and prepares its statements first.
BEGIN_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class Party:
    """One side of a pair."""

    #: What its client runs, for messages.
    name: str
    #: Processes of its server.
    pids: Sequence[int]
    #: Command line of its client.
    command: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Turned:
    """What a client did in its turns."""

    text: str
    returncode: int
    #: When it began to count, by the monotonic clock.
    began_s: float
    #: From when to when it was its turn, in order.
    spans: tuple[tuple[float, float], ...]

    def active_s(self, counted_s: float) -> float:
        """Return how much of the `counted_s` seconds since it began it was at work."""
        end_s = self.began_s + counted_s
        return sum(
            max(0.0, min(stop, end_s) - max(start, self.began_s)) for start, stop in self.spans
        )


@dataclass(kw_only=True)
class _Player:
    """A party while turns are taken."""

    party: Party
    process: shell.Process
    output: Path
    began_s: float = 0.0
    #: Of the client, without the sandbox around it.
    pids: tuple[int, ...] = ()
    spans: list[tuple[float, float]] = field(default_factory=list)

    def hold(self) -> None:
        """Stop client and server."""
        _signal([*self.pids, *counters.family(self.party.pids)], signal.SIGSTOP)

    def go_on(self) -> None:
        """Let server and client go on."""
        _signal([*counters.family(self.party.pids), *self.pids], signal.SIGCONT)

    def begin(self, mark: str) -> None:
        """Wait until the client has begun to count; what runs until `hold` is its first turn."""
        deadline = time.monotonic() + BEGIN_TIMEOUT_S
        while mark not in self.text():
            if self.process.poll() is not None or time.monotonic() > deadline:
                said = self.text()[-shell.TAIL_BYTES :]
                raise ClientError("measure", f"{self.party.name}: the client did not begin", said)
            time.sleep(_POLL_S)
        self.began_s = time.monotonic()
        found = counters.family([self.process.pid])
        self.pids = tuple(pid for pid in found if not _is_wall(pid))

    def text(self) -> str:
        """Return what the client has said so far."""
        with self.output.open("rb") as file:
            return file.read(shell.OUTPUT_BYTES_MAX).decode(errors="replace")


def take_turns(
    parties: Sequence[Party],
    *,
    turn_s: float,
    timeout_s: float,
    mark: str,
    on_switch: Callable[[int | None], None] = lambda _: None,
) -> list[Turned]:
    """Run the clients of both parties in turns to their ends; the first party goes first.

    Args:
        parties: The two sides.
        turn_s: Length of a turn in seconds.
        timeout_s: After so many seconds in all the clients are killed.
        mark: What a client prints when it begins to count.
        on_switch: Called while all are stopped, with the index of whose turn comes next; None
            after the last one.

    Raises:
        ClientError: A client did not begin, or was not done in time; carries what it said.
    """
    deadline = time.monotonic() + timeout_s
    with tempfile.TemporaryDirectory(prefix="forkwatch-turns-") as folder, _ending(parties) as all_:
        players: list[_Player] = []
        for index, party in enumerate(parties):
            others = [other.pids for other in parties if other is not party]
            for pids in others:
                _signal(counters.family(pids), signal.SIGSTOP)
            _signal(counters.family(party.pids), signal.SIGCONT)
            on_switch(index)
            player = _start(party, Path(folder) / str(index))
            all_.append(player)
            player.begin(mark)
            player.hold()
            player.spans.append((player.began_s, time.monotonic()))
            players.append(player)
        _alternate(players, turn_s=turn_s, deadline_s=deadline, on_switch=on_switch)
        on_switch(None)
        return [
            Turned(
                text=player.text(),
                returncode=player.process.wait(0.0) or 0,
                began_s=player.began_s,
                spans=tuple(player.spans),
            )
            for player in players
        ]


def _alternate(
    players: Sequence[_Player],
    *,
    turn_s: float,
    deadline_s: float,
    on_switch: Callable[[int | None], None],
) -> None:
    turn = 0
    while True:
        working = [at for at, player in enumerate(players) if player.process.poll() is None]
        failed = any(player.process.poll() for player in players)
        if not working or failed:
            return
        if time.monotonic() > deadline_s:
            hung = players[working[0]]
            said = hung.text()[-shell.TAIL_BYTES :]
            raise ClientError("measure", f"{hung.party.name}: the client hung", said)
        now = working[turn % len(working)]
        player = players[now]
        on_switch(now)
        began = time.monotonic()
        player.go_on()
        # A server without its client would spend the rest of the turn on what it has put off.
        player.process.wait(turn_s)
        player.hold()
        player.spans.append((began, time.monotonic()))
        turn += 1


def _start(party: Party, output: Path) -> _Player:
    with output.open("wb") as file:
        return _Player(party=party, process=shell.start(party.command, output=file), output=output)


@contextmanager
def _ending(parties: Sequence[Party]) -> Iterator[list[_Player]]:
    """Give a list for players; afterwards their clients are gone and all servers go on."""
    players: list[_Player] = []
    try:
        yield players
    finally:
        for player in players:
            # Killed while it is stopped, a sandbox would not notice.
            player.go_on()
            player.process.kill()
        for party in parties:
            _signal(counters.family(party.pids), signal.SIGCONT)


def _signal(pids: Sequence[int], number: int) -> None:
    for pid in pids:
        # Who has died is noticed when it is measured next.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _is_wall(pid: int) -> bool:
    """Whether a process is the sandbox around a client and not the client."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip() == "bwrap"
    return False
