"""Topology: which logical processors share a core, a package or a memory node.

Read from sysfs; a machine that does not say is taken as one package of whole cores.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runner.host.machine import cpu_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner.host.machine import Machine

_CPU: Final = "/sys/devices/system/cpu"
_NODE: Final = "/sys/devices/system/node"
#: A processor that takes more than this many times its fair part of the device interrupts is one
#: that they were steered to; multi-queue disks and networks stay below on busy machines.
INTERRUPT_EXCESS: Final = 2.0
#: Below so many interrupts since boot the counts say nothing yet.
INTERRUPTS_MIN: Final = 10_000
_LARGE: Final = 1024
_SMALL: Final = 512


@dataclass(frozen=True, kw_only=True)
class Cpu:
    """One logical processor."""

    number: int
    #: The lowest logical processor on the same core: equal means sharing it.
    core: int
    package: int
    node: int
    #: Relative speed; differs between the large and the small cores of one chip.
    capacity: int = 1024


@dataclass(frozen=True, kw_only=True)
class Topology:
    """The processors that are running, in order."""

    cpus: tuple[Cpu, ...]

    def only(self, allowed: Sequence[int]) -> Topology:
        """Return the part that may be used."""
        return Topology(cpus=tuple(cpu for cpu in self.cpus if cpu.number in set(allowed)))


def flat(cpus: Sequence[int]) -> Topology:
    """Return a topology of whole cores on one node."""
    return Topology(
        cpus=tuple(Cpu(number=number, core=number, package=0, node=0) for number in sorted(cpus))
    )


def read(machine: Machine) -> Topology:
    """Return the machine's processors."""
    nodes = {
        cpu: int(name.rpartition("node")[2])
        for name in machine.names(f"{_NODE}/node[0-9]*")
        for cpu in cpu_list(machine.text(f"{name}/cpulist"))
    }
    found = []
    for number in machine.online():
        folder = f"{_CPU}/cpu{number}/topology"
        # The first name is the older kernels'.
        siblings = cpu_list(
            machine.text(f"{folder}/thread_siblings_list")
            or machine.text(f"{folder}/core_cpus_list")
        )
        found.append(
            Cpu(
                number=number,
                core=min(siblings, default=number),
                package=machine.number(f"{folder}/physical_package_id") or 0,
                node=nodes.get(number, 0),
                capacity=_capacity(machine, number),
            )
        )
    return Topology(cpus=tuple(found))


def _capacity(machine: Machine, number: int) -> int:
    """Return a processor's relative speed; equal where the machine makes no difference."""
    # ARM says it for each; Intel lists its large cores, where there are small ones too.
    said = machine.number(f"{_CPU}/cpu{number}/cpu_capacity")
    large = cpu_list(machine.text("/sys/devices/cpu_core/cpus"))
    return _SMALL if large and number not in large else said or _LARGE


def interrupt_cpus(machine: Machine) -> tuple[int, ...]:
    """Return the processors to which device interrupts are steered; none when evenly spread.

    The counts since boot wander, so a placement must not follow them from job to job: calibration
    looks once and keeps the answer in the host profile.
    """
    lines = machine.text("/proc/interrupts").splitlines()
    heads = [int(word[3:]) for word in lines[0].split()] if lines else []
    totals = dict.fromkeys(heads, 0)
    for line in lines[1:]:
        label, _, rest = line.partition(":")
        # Devices have numbers; the lettered ones are the processors' own, such as the timer.
        if not re.fullmatch(r"\s*\d+", label):
            continue
        for cpu, count in zip(heads, rest.split(), strict=False):
            totals[cpu] += int(count) if count.isdigit() else 0
    all_of_them = sum(totals.values())
    if all_of_them < INTERRUPTS_MIN:
        return ()
    fair = all_of_them / len(totals)
    # With two processors twice the fair part is everything; three quarters is a clear choice.
    excess = min(INTERRUPT_EXCESS, 0.75 * len(totals))
    return tuple(cpu for cpu, count in totals.items() if count > excess * fair)
