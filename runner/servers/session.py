"""A word with a server of the MySQL family: one SQL statement in, its rows as text out.

The client is the system's own, in the sandbox: a hostile server may ask its client for files. It
costs about 30 ms a statement, so it is for what happens between slices.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from runner import shell
from runner.errors import ServerError
from runner.sandbox import INSIDE, Bind, Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runner.servers.engine import RunningServer

STATEMENT_TIMEOUT_S: Final = 120.0
_NUMBER: Final = re.compile(r"[0-9]{1,20}")


def rows(
    server: RunningServer, statement: str, *, timeout_s: float = STATEMENT_TIMEOUT_S
) -> list[tuple[str, ...]]:
    """Return the rows that the server answers with; NULL is the word NULL.

    Raises:
        ServerError: The server refused the statement or did not answer; carries what it said.
    """
    words = [shell.require("mariadb", package="mariadb-client"), "--no-defaults"]
    words += [f"--socket={INSIDE}/run/{server.socket.name}", "--user=root"]
    words += ["--batch", "--skip-column-names", f"--execute={statement}"]
    return answered(server, words, statement, timeout_s=timeout_s)


def answered(
    server: RunningServer, words: list[str], statement: str, *, timeout_s: float
) -> list[tuple[str, ...]]:
    """Return what a client prints that was started with these words, a tuple for each line.

    Raises:
        ServerError: It failed or took too long; carries what it said.
    """
    sandbox = Sandbox(binds=(Bind(host=server.socket.parent, inside="run"),))
    done = sandbox.run(words, timeout_s=timeout_s)
    if not done.ok:
        said = (done.stdout + done.stderr)[-shell.TAIL_BYTES :]
        raise ServerError("measure", f"the server did not take: {statement[:200]}", said)
    return [tuple(line.split("\t")) for line in done.stdout.splitlines()]


def status(server: RunningServer, *names: str) -> Mapping[str, int]:
    """Return status counters by lower-case name; all numeric ones where no name is given.

    A name that this server does not have is left out.

    Raises:
        ServerError: As `rows`.
    """
    wanted = {name.lower() for name in names}
    found = numbers(rows(server, "SHOW GLOBAL STATUS"))
    return {name: value for name, value in found.items() if not wanted or name in wanted}


def numbers(answer: Iterable[tuple[str, ...]]) -> dict[str, int]:
    """Return what is a name and a plain number among rows, by lower-case name."""
    found = {}
    for name, *value in answer:
        # The server may be hostile: "²" is a digit too, and int() does not take it.
        if value and _NUMBER.fullmatch(value[0]):
            found[name.lower()] = int(value[0])
    return found
