"""One spinner: uses what is left of a processor until the runner that started it is gone.

Run by its path as `python -I -S spinner.py PARENT`, so that it imports next to nothing: it has to
be there at once, and to leave the caches to the benchmark. Where and how meekly it runs, the runner
decides.
"""

from __future__ import annotations

import os
import sys

#: Turns between two looks at whether the parent still lives: about 10 ms.
TURNS = 200_000


def spin(parent: int) -> None:
    """Use a processor's idle time until the parent is gone."""
    # A parent that died before we looked has already been replaced by another.
    while os.getppid() == parent:
        for _ in range(TURNS):
            pass


if __name__ == "__main__":
    spin(int(sys.argv[1]))
