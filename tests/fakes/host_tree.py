"""A host as a folder that looks like `/`: layouts of real machines, and files that refuse.

Layouts are rows of (processor, core, package, node). Those of machines that are not at hand are
what lscpu printed on them, as util-linux keeps it among its expected outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runner import shell
from runner.host.machine import Machine

Row = tuple[int, int, int, int]

#: The guest these tests were written on: two cores, one thread each.
SMALL_GUEST: Sequence[Row] = [(0, 0, 0, 0), (1, 1, 0, 0)]
#: Eight cores with two threads, numbered as Linux does on one package.
DESKTOP: Sequence[Row] = [(cpu, cpu % 8, 0, 0) for cpu in range(16)]
#: lscpu-x86_64-dellr710: two packages, nodes interleaved, threads 8 apart.
TWO_PACKAGES: Sequence[Row] = [(cpu, cpu % 8, cpu % 2, cpu % 2) for cpu in range(16)]
#: lscpu-arm-A510-A710-A715-X3: no threads, cores of four kinds, no memory nodes.
PHONE: Sequence[Row] = [(cpu, cpu, 0, 0) for cpu in range(8)]
PHONE_CAPACITY = {0: 270, 1: 270, 2: 270, 3: 800, 4: 800, 5: 800, 6: 800, 7: 1024}
#: lscpu-x86_64-epyc_7451: two packages with four nodes of six cores each, threads 48 apart.
EPYC: Sequence[Row] = [(cpu, cpu % 48, cpu % 48 // 24, cpu % 48 // 6) for cpu in range(96)]

CPU = "/sys/devices/system/cpu"
SMT = f"{CPU}/smt/control"
THP = "/sys/kernel/mm/transparent_hugepage/enabled"
SWAPPINESS = "/proc/sys/vm/swappiness"
BOOST = f"{CPU}/cpufreq/boost"
BOOT = "/proc/sys/kernel/random/boot_id"


@dataclass(frozen=True, kw_only=True)
class FakeMachine(Machine):
    """A machine whose kernel brackets one word, and whose files may refuse or kill the writer."""

    #: Places that may not be written.
    refusing: set[str] = field(default_factory=set)
    #: Places that take a value and keep their own.
    stubborn: set[str] = field(default_factory=set)
    #: Places at which the writer dies.
    deadly: set[str] = field(default_factory=set)
    #: Units of its service manager with their states; none without systemd.
    units: dict[str, str] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)

    def write(self, name: str, text: str) -> None:
        """Make a file."""
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).write_text(f"{text}\n")

    def put(self, name: str, value: str) -> None:
        """Write as the kernel takes it."""
        if name in self.deadly:
            raise KeyboardInterrupt
        if name in self.refusing:
            raise PermissionError(1, "Operation not permitted")
        self.written.append(name)
        if name in self.stubborn:
            return
        if name == THP:
            words = ["always", "madvise", "never"]
            value = " ".join(f"[{word}]" if word == value else word for word in words)
        super().put(name, value)

    def command(self, argv: Sequence[str]) -> shell.Completed | None:
        """Be systemctl."""
        verb, *words = argv[1:]
        if verb == "list-unit-files":
            lines = [f"{unit} enabled enabled" for unit in self.units if unit in words]
            return shell.Completed(returncode=0, stdout="\n".join(lines), stderr="")
        (unit,) = words
        if verb == "is-active":
            return shell.Completed(returncode=0, stdout=f"{self.units[unit]}\n", stderr="")
        if unit in self.refusing:
            return shell.Completed(returncode=1, stdout="", stderr="Access denied")
        self.units[unit] = {"start": "active", "stop": "inactive"}[verb]
        return shell.Completed(returncode=0, stdout="", stderr="")


def a_machine(
    root: Path, layout: Sequence[Row], *, capacity: dict[int, int] | None = None
) -> FakeMachine:
    """Return a machine with these processors and nothing to tune."""
    machine = FakeMachine(root=root)
    machine.write(f"{CPU}/online", f"0-{len(layout) - 1}")
    cores: dict[int, list[int]] = {}
    nodes: dict[int, list[int]] = {}
    for cpu, core, _, node in layout:
        cores.setdefault(core, []).append(cpu)
        nodes.setdefault(node, []).append(cpu)
    for cpu, core, package, _ in layout:
        siblings = ",".join(map(str, cores[core]))
        machine.write(f"{CPU}/cpu{cpu}/topology/thread_siblings_list", siblings)
        machine.write(f"{CPU}/cpu{cpu}/topology/physical_package_id", str(package))
        if capacity:
            machine.write(f"{CPU}/cpu{cpu}/cpu_capacity", str(capacity[cpu]))
    for node, members in nodes.items():
        machine.write(f"/sys/devices/system/node/node{node}/cpulist", ",".join(map(str, members)))
    machine.write(BOOT, "first-boot")
    return machine


def a_noisy_server(root: Path) -> FakeMachine:
    """Return a server as its distribution delivers it: everything is as a benchmark hates it."""
    machine = a_machine(root, DESKTOP)
    for cpu in range(16):
        folder = f"{CPU}/cpu{cpu}/cpufreq"
        machine.write(f"{folder}/scaling_governor", "powersave" if cpu else "schedutil")
        machine.write(f"{folder}/scaling_available_governors", "performance powersave schedutil")
        for state, latency in enumerate((0, 2, 85)):
            machine.write(f"{CPU}/cpu{cpu}/cpuidle/state{state}/disable", "0")
            machine.write(f"{CPU}/cpu{cpu}/cpuidle/state{state}/latency", str(latency))
    machine.write(BOOST, "1")
    machine.write(SMT, "on")
    machine.write(THP, "[always] madvise never")
    machine.write(SWAPPINESS, "60")
    machine.write("/proc/swaps", "Filename Type Size\n/swap file 100")
    machine.write("/proc/sys/kernel/randomize_va_space", "0")
    machine.write("/proc/sys/kernel/numa_balancing", "1")
    machine.write("/proc/sys/kernel/sched_autogroup_enabled", "1")
    machine.path("/run/systemd/system").mkdir(parents=True)
    machine.units.update(
        {"apt-daily.timer": "active", "fstrim.timer": "inactive", "cron.service": "active"}
    )
    return machine
