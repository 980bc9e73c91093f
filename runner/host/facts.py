"""Facts: this machine as a run document and `forkwatch host show` describe it."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING

from results.document import Host
from runner.host import readings, topology
from runner.host.checks import quiet_checks
from runner.host.knobs import KNOBS
from runner.host.machine import Machine, show_cpus

if TYPE_CHECKING:
    from collections.abc import Mapping


def describe(host_class: str, machine: Machine | None = None) -> Host:
    """Return the machine as the run document records it."""
    seen = machine or Machine()
    warnings = tuple(f"{check.name}: {check.found}" for check in quiet_checks(seen) if not check.ok)
    return Host(
        name=platform.node() or "unknown",
        host_class=host_class,
        cpu_model=cpu_model(seen),
        logical_cpus=len(seen.online()),
        memory_bytes=memory_bytes(seen),
        kernel=kernel(seen),
        os=_os_name(),
        virtualised=seen.virtualised(),
        settings=settings(seen),
        warnings=warnings,
    )


def settings(machine: Machine) -> Mapping[str, str]:
    """Return the knobs and the clock as they are now, those that the machine has."""
    shown = {knob.name: ", ".join(dict.fromkeys(knob.read(machine).values())) for knob in KNOBS}
    shown["clocksource"] = machine.text(readings.CLOCK)
    return {name: value for name, value in shown.items() if value}


def layout(machine: Machine) -> Mapping[str, str]:
    """Return how the processors are arranged, in words."""
    seen = topology.read(machine)
    cores, packages, nodes = (
        len({getattr(cpu, part) for cpu in seen.cpus}) for part in ("core", "package", "node")
    )
    return {
        "cpu_model": cpu_model(machine),
        "processors": f"{len(seen.cpus)} logical, {cores} cores, {packages} packages",
        "memory_nodes": str(nodes),
        "memory": f"{memory_bytes(machine) / 1024**3:.1f} GiB",
        "kernel": kernel(machine),
        "os": _os_name(),
        "virtualised": "yes" if machine.virtualised() else "no",
        "interrupts": show_cpus(topology.interrupt_cpus(machine)) or "evenly spread",
        "usable": show_cpus(sorted(os.sched_getaffinity(0))),
    }


def cpu_model(machine: Machine) -> str:
    """Return the processor's name; ARM kernels give numbers for it."""
    arm = "/".join(machine.cpuinfo(key) for key in ("CPU implementer", "CPU part"))
    return machine.cpuinfo("model name") or arm.strip("/") or platform.machine()


def kernel(machine: Machine) -> str:
    """Return the kernel's release."""
    return machine.text("/proc/sys/kernel/osrelease") or platform.release()


def memory_bytes(machine: Machine) -> int:
    """Return the size of memory."""
    for line in machine.text("/proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return 0


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        return "unknown"
