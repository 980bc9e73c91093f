"""The two streams of a verb and the exit statuses: stdout is the product, stderr the log."""

from __future__ import annotations

from typing import Final

from rich.console import Console

EXIT_FOUND: Final = 1
EXIT_MISUSE: Final = 2
EXIT_UNSTABLE: Final = 3
EXIT_INTERRUPTED: Final = 130

out: Final = Console(soft_wrap=True)
err: Final = Console(stderr=True)
