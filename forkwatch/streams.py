"""The two streams of a verb and the exit statuses: stdout is the product, stderr the log."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from rich.console import Console

if TYPE_CHECKING:
    from typing import TextIO

EXIT_FOUND: Final = 1
EXIT_MISUSE: Final = 2
EXIT_UNSTABLE: Final = 3
EXIT_INTERRUPTED: Final = 130

#: Of what goes into a file or a pipe, where Rich would fold the columns of a table into 80: wide
#: enough for the widest, and a line ends where its words do.
_UNFOLDED: Final = 1_000


def width_of(stream: TextIO) -> int | None:
    """Return the width to print for; None leaves it to the terminal or to `COLUMNS`."""
    said = "COLUMNS" in os.environ  # noqa: TID251  the shell's own, and no setting of ours
    return None if said or stream.isatty() else _UNFOLDED


out: Final = Console(soft_wrap=True, width=width_of(sys.stdout))
err: Final = Console(stderr=True, width=width_of(sys.stderr))
