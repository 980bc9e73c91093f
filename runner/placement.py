"""Placement: which processors a server and its client run on, and which stay free for the rest.

A wake-up across processors costs about 40 microseconds on a virtual machine and flips results
several-fold with the scheduler's mood, so server and client are always pinned unless a plan says
otherwise, and the mode is part of a series' identity. Hardware threads of one core are never used
side by side, one memory node is used where it suffices, and the processors that housekeeping and
interrupts tend to land on are left out where there are enough.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Final

from results.document import Placement
from runner import spinners
from runner.host import topology
from runner.host.machine import Machine
from runner.host.profile import kind_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from runner.host.profile import HostProfile
    from runner.host.topology import Topology

#: Taken when neither the plan nor the host's profile says anything. On a virtual machine one client
#: repeats within 1 % on the server's own core and within 5 % on another (docs/runner-host.md).
DEFAULT_MODES: Final = {"single-client": "shared-core"}
DEFAULT_MODE: Final = "disjoint"
#: The client's part of the cores: a point query took 11 of 16 microseconds in the server, so a
#: quarter is enough that the client is never what limits it (docs/runner-host.md).
CLIENT_SHARE: Final = 0.25


def place(
    mode: str,
    *,
    cpus: Sequence[int],
    layout: Topology | None = None,
    avoid: Collection[int] = (),
) -> Placement:
    """Return where server and client go on a machine with these logical processors.

    Args:
        mode: `shared-core` puts both on the last core, for tests of CPU cost with one client;
            `disjoint` gives the client the last cores and the server the others;
            `disjoint-awake` is the same with the processors kept from sleeping; `unpinned` pins
            nothing. The mode of the answer is what was done: one core can only be shared.
        cpus: Processors that may be used.
        layout: How they share cores and memory nodes; whole cores on one node where not given.
        avoid: Processors to leave out where there are enough, such as those that take interrupts.
    """
    if mode == "unpinned":
        return Placement(mode=mode)
    usable = (layout or topology.flat(cpus)).only(cpus)
    cores = _cores(usable) or list(cpus)[:1]
    if mode == "shared-core" or len(cores) == 1:
        last = _quiet(cores, avoid=avoid, needed=1)[-1:]
        return Placement(mode="shared-core", server_cpus=tuple(last), client_cpus=tuple(last))
    quiet = _quiet(cores, avoid=avoid, needed=2)
    clients = max(1, int(CLIENT_SHARE * len(quiet)))
    return Placement(
        mode=mode, server_cpus=tuple(quiet[:-clients]), client_cpus=tuple(quiet[-clients:])
    )


def decide(
    explicit: str | None,
    *,
    profile: HostProfile | None,
    cpus: Sequence[int],
    threads: int,
    writes_only: bool = False,
    machine: Machine | None = None,
) -> Placement:
    """Return the placement of a job: the plan's mode, else the profile's, else the usual one.

    Args:
        explicit: The mode that the plan names, if any.
        profile: What calibration found out about this host, if it was done.
        cpus: Processors that may be used.
        threads: Clients of the suite.
        writes_only: Whether every workload of the job writes.
        machine: The host; this one where not given.
    """
    seen = machine or Machine()
    kind = kind_of(threads=threads, writes_only=writes_only)
    calibrated = profile.modes.get(kind) if profile else None
    mode = explicit or calibrated or DEFAULT_MODES.get(kind, DEFAULT_MODE)
    avoid = profile.avoid if profile else ()
    return place(mode, cpus=cpus, layout=topology.read(seen), avoid=avoid)


@contextlib.contextmanager
def kept(placement: Placement, machine: Machine | None = None) -> Iterator[tuple[int, ...]]:
    """Keep the processors awake where the mode says so; gives the spinners' process ids.

    Raises:
        HostError: A processor cannot be kept awake.
    """
    if placement.mode != "disjoint-awake":
        yield ()
        return
    with spinners.awake((*placement.server_cpus, *placement.client_cpus), machine) as pids:
        yield pids


def _cores(usable: Topology) -> list[int]:
    """Return one logical processor of each core, on one memory node where that has two cores."""
    cores: dict[int, topology.Cpu] = {}
    for cpu in usable.cpus:
        cores.setdefault(cpu.core, cpu)
    # Large and small cores do not mix: the largest kind that there are two of.
    kinds: dict[int, list[topology.Cpu]] = {}
    for cpu in cores.values():
        kinds.setdefault(cpu.capacity, []).append(cpu)
    enough = [capacity for capacity, kind in kinds.items() if len(kind) > 1]
    first = kinds[max(enough)] if enough else list(cores.values())
    nodes: dict[int, list[int]] = {}
    for cpu in first:
        nodes.setdefault(cpu.node, []).append(cpu.number)
    # Of equally large nodes the last: the kernel's own work is on the first.
    best = max(nodes.items(), key=lambda item: (len(item[1]), item[0]), default=(0, []))[1]
    return best if len(best) > 1 else [cpu.number for cpu in first]


def _quiet(cores: Sequence[int], *, avoid: Collection[int], needed: int) -> list[int]:
    """Return the cores without those to leave out, as long as enough remain."""
    left = list(cores)
    # Housekeeping first: timers, unbound kernel work and most interrupts are on the first core.
    if len(left) > needed:
        left = left[1:]
    for cpu in avoid:
        # Half of the cores remain in use, whatever the interrupts do.
        if cpu in left and len(left) > max(needed, len(cores) // 2):
            left.remove(cpu)
    return left


def usable_cpus() -> list[int]:
    """Return the processors this process may run on, in order."""
    return sorted(os.sched_getaffinity(0))


@contextlib.contextmanager
def given_back() -> Iterator[None]:
    """Let this process use its processors again, whatever it stepped aside from meanwhile.

    A process may do one job after another, and each has to be placed like the first.
    """
    mine = os.sched_getaffinity(0)
    try:
        yield
    finally:
        os.sched_setaffinity(0, mine)


def step_aside(placement: Placement, *, cpus: Sequence[int]) -> None:
    """Move this process off the processors under measurement, where any other is left."""
    taken = {*placement.server_cpus, *placement.client_cpus}
    others = set(cpus) - taken
    if taken and others:
        os.sched_setaffinity(0, others)
