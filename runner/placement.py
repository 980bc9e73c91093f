"""Placement: which processors a server and its client run on, and which stay free for the rest.

A wake-up across processors costs about 40 microseconds on a virtual machine and flips results
several-fold with the scheduler's mood, so server and client are always pinned unless a plan says
otherwise, and the mode is part of a series' identity.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from results.document import Placement

if TYPE_CHECKING:
    from collections.abc import Sequence


def place(mode: str, *, cpus: Sequence[int]) -> Placement:
    """Return where server and client go on a machine with these logical processors.

    Args:
        mode: `shared-core` puts both on the last one, for tests of CPU cost with one client;
            `disjoint` gives the client the last one and the server the others but the first;
            `unpinned` pins nothing. The first processor is left to the rest of the system where
            there is more than one, since interrupts tend to land there.
        cpus: Processors that may be used.
    """
    free = list(cpus)[1:] or list(cpus)
    if mode == "unpinned":
        return Placement(mode=mode)
    if mode == "shared-core" or len(cpus) == 1:
        return Placement(mode="shared-core", server_cpus=(free[-1],), client_cpus=(free[-1],))
    server = free[:-1] or [cpus[0]]
    return Placement(mode=mode, server_cpus=tuple(server), client_cpus=(free[-1],))


def usable_cpus() -> list[int]:
    """Return the processors this process may run on, in order."""
    return sorted(os.sched_getaffinity(0))


def step_aside(placement: Placement, *, cpus: Sequence[int]) -> None:
    """Move this process off the processors under measurement, where any other is left."""
    taken = {*placement.server_cpus, *placement.client_cpus}
    others = set(cpus) - taken
    if taken and others:
        os.sched_setaffinity(0, others)
