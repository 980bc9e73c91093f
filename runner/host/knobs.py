"""Knobs: the host's settings that decide how well results repeat, one class each.

A knob is read as places with values: a place is a file of the kernel, or a unit of the service
manager. It says which value a benchmark wants there and why. Knobs decide nothing else: changing
and restoring them is `tuning`.

Sources: `pyperf system` for the idea of one class per setting; the practice of the field in the
Small Datum and Percona benchmarks (governor fixed, boost off, SMT off, no huge pages by surprise).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runner.host.machine import Machine

_CPU: Final = "/sys/devices/system/cpu"


class Knob(ABC):
    """One setting; several places when the kernel keeps it once per processor."""

    name: ClassVar[str]
    #: Why it matters, and what else a person could do; shown when it is not as wanted.
    advice: ClassVar[str]

    @abstractmethod
    def places(self, machine: Machine) -> Sequence[str]:
        """Return where this setting is kept on the machine."""

    @abstractmethod
    def wanted(self, machine: Machine, place: str, value: str) -> str:
        """Return the value to have at a place; `value` itself where it will do."""

    def value(self, machine: Machine, place: str) -> str:
        """Return the exact value at a place; empty where it cannot be read."""
        return machine.text(place)

    def write(self, machine: Machine, place: str, value: str) -> None:
        """Set a place.

        Raises:
            OSError: It was refused.
        """
        machine.put(place, value)

    def read(self, machine: Machine) -> Mapping[str, str]:
        """Return every readable place with its value; empty where the machine has no such knob."""
        values = {place: self.value(machine, place) for place in self.places(machine)}
        return {place: value for place, value in values.items() if value}

    def available(self, machine: Machine) -> bool:
        """Whether this machine has the knob."""
        return bool(self.read(machine))

    def off_target(self, machine: Machine) -> Mapping[str, str]:
        """Return the places that are not as wanted, with the wanted value."""
        wants = {
            place: self.wanted(machine, place, value)
            for place, value in self.read(machine).items()
            if self.wanted(machine, place, value) != value
        }
        return dict(wants)


class Governor(Knob):
    """How the kernel picks the clock rate."""

    name = "governor"
    advice = "the clock rate follows the load; `performance` keeps it up"

    def places(self, machine: Machine) -> Sequence[str]:
        """Return one file for each processor."""
        return machine.names(f"{_CPU}/cpu[0-9]*/cpufreq/scaling_governor")

    def wanted(self, machine: Machine, place: str, value: str) -> str:
        """Return `performance` where the driver offers it."""
        offered = machine.text(place.replace("scaling_governor", "scaling_available_governors"))
        return "performance" if "performance" in offered.split() else value


class Turbo(Knob):
    """Clock rates above the nominal one, which depend on heat and on neighbours."""

    name = "turbo"
    advice = "boost depends on heat and on what other cores do; a fixed rate repeats"

    def places(self, machine: Machine) -> Sequence[str]:
        """Return Intel's switch, else the general one."""
        intel = f"{_CPU}/intel_pstate/no_turbo"
        return (intel,) if machine.text(intel) else (f"{_CPU}/cpufreq/boost",)

    def wanted(self, machine: Machine, place: str, value: str) -> str:
        """Return off: Intel's file holds the opposite of the other."""
        del machine, value
        return "1" if place.endswith("no_turbo") else "0"


class Smt(Knob):
    """Two hardware threads on one core, each slowing the other."""

    name = "smt"
    advice = "a thread beside the measured one takes half its core; pinning leaves siblings idle"

    def places(self, machine: Machine) -> Sequence[str]:
        """Return the kernel's switch."""
        del machine
        return (f"{_CPU}/smt/control",)

    def wanted(self, machine: Machine, place: str, value: str) -> str:
        """Return off where it is on; other words say that there is nothing to switch."""
        del machine, place
        return "off" if value == "on" else value


class HugePages(Knob):
    """Transparent huge pages, which come and go with the state of memory."""

    name = "thp"
    advice = "the kernel merges pages behind the server's back; `madvise` leaves it to the server"

    def places(self, machine: Machine) -> Sequence[str]:
        """Return the kernel's switch."""
        del machine
        return ("/sys/kernel/mm/transparent_hugepage/enabled",)

    def value(self, machine: Machine, place: str) -> str:
        """Return the chosen word: the file lists all and brackets one."""
        return machine.text(place).partition("[")[2].partition("]")[0]

    def wanted(self, machine: Machine, place: str, value: str) -> str:
        """Return `madvise` instead of `always`; `never` will do as well."""
        del machine, place
        return "madvise" if value == "always" else value


class KernelNumber(Knob):
    """A number below /proc/sys."""

    place: ClassVar[str]
    target: ClassVar[str]
    #: Values that will do besides the target.
    accepted: ClassVar[frozenset[str]] = frozenset()

    def places(self, machine: Machine) -> Sequence[str]:
        """Return the one file."""
        del machine
        return (self.place,)

    def wanted(self, machine: Machine, place: str, value: str) -> str:
        """Return the target unless the value will do."""
        del machine, place
        return value if value in self.accepted else self.target


class Swappiness(KernelNumber):
    """How readily the kernel swaps memory out to have more page cache."""

    name = "swappiness"
    advice = "buffer pools are swapped out in favour of the page cache; 1 avoids it"
    place = "/proc/sys/vm/swappiness"
    target = "1"
    accepted = frozenset({"0"})

    def wanted(self, machine: Machine, place: str, value: str) -> str:
        """Return the value as it is on a machine without swap, where it means nothing."""
        # The first line is the heading.
        if len(machine.text("/proc/swaps").splitlines()) < 2:  # noqa: PLR2004  heading and one area
            return value
        return super().wanted(machine, place, value)


class AddressRandomisation(KernelNumber):
    """Random addresses of stack, heap and libraries."""

    name = "aslr"
    advice = "one fixed layout biases every start alike; random ones average out over starts"
    place = "/proc/sys/kernel/randomize_va_space"
    target = "2"


class NumaBalancing(KernelNumber):
    """Pages moved between memory nodes while a benchmark runs."""

    name = "numa_balancing"
    advice = "the kernel unmaps and moves pages to see who uses them; pinning makes it needless"
    place = "/proc/sys/kernel/numa_balancing"
    target = "0"


class SessionGroups(KernelNumber):
    """Scheduling groups made of sessions: one server against one client, however many threads."""

    name = "autogroup"
    advice = "every session gets an equal part of a processor, even one that spins at idle priority"
    place = "/proc/sys/kernel/sched_autogroup_enabled"
    target = "0"


class IdleStates(Knob):
    """Sleep states of processors, from which waking takes time."""

    name = "idle_states"
    advice = "deep sleep makes wake-ups slow and uneven; `disjoint-awake` avoids it while measuring"
    #: Waking from C1 takes 1 to 2 microseconds, from C6 and deeper 85 to 890 (Linux, intel_idle.c
    #: tables of Skylake and later servers); one query of 15 to 20 microseconds notices the latter.
    LATENCY_MAX_US: Final = 10

    def places(self, machine: Machine) -> Sequence[str]:
        """Return the switches of slow states; a guest's are the host's affair, so none there."""
        if machine.virtualised():
            return ()
        return [
            name
            for name in machine.names(f"{_CPU}/cpu[0-9]*/cpuidle/state[0-9]*/disable")
            if (machine.number(name.replace("disable", "latency")) or 0) > self.LATENCY_MAX_US
        ]

    def wanted(self, machine: Machine, place: str, value: str) -> str:
        """Return disabled."""
        del machine, place, value
        return "1"


class Units(Knob):
    """Units of systemd that start work of their own accord."""

    units: ClassVar[tuple[str, ...]]

    def places(self, machine: Machine) -> Sequence[str]:
        """Return the units that this machine has, where systemd runs it."""
        if not machine.path("/run/systemd/system").is_dir():
            return ()
        words = ["systemctl", "list-unit-files", "--no-legend", "--plain", *self.units]
        done = machine.command(words)
        if done is None:
            return ()
        return [line.split()[0] for line in done.stdout.splitlines() if line.split()]

    def value(self, machine: Machine, place: str) -> str:
        """Return active or inactive; a unit that failed does nothing either."""
        done = machine.command(["systemctl", "is-active", place])
        state = done.stdout.strip() if done else ""
        return {"activating": "active", "failed": "inactive"}.get(state, state)

    def wanted(self, machine: Machine, place: str, value: str) -> str:
        """Return inactive."""
        del machine, place, value
        return "inactive"

    def write(self, machine: Machine, place: str, value: str) -> None:
        """Start or stop the unit; until the next boot, nothing is enabled or disabled."""
        verb = "start" if value == "active" else "stop"
        done = machine.command(["systemctl", verb, place])
        if done is None or not done.ok:
            raise OSError(done.stderr.strip() if done else "systemctl is not installed")


class Timers(Units):
    """Upkeep that the distribution starts by the clock."""

    name = "timers"
    advice = "package updates, index builds and trims start in the middle of a measurement"
    units = (
        "apt-daily.timer",
        "apt-daily-upgrade.timer",
        "dnf-makecache.timer",
        "dpkg-db-backup.timer",
        "e2scrub_all.timer",
        "fstrim.timer",
        "fwupd-refresh.timer",
        "logrotate.timer",
        "man-db.timer",
        "mlocate-updatedb.timer",
        "plocate-updatedb.timer",
        "unattended-upgrades.service",
        "packagekit.service",
    )


class Cron(Units):
    """The classic scheduler, whatever its jobs are."""

    name = "cron"
    advice = "its jobs start in the middle of a measurement"
    units = ("anacron.timer", "cron.service", "crond.service", "cronie.service")
    _DAEMONS: Final = frozenset({"cron", "crond", "anacron", "fcron"})

    def places(self, machine: Machine) -> Sequence[str]:
        """Return the units; without systemd, the daemons that run."""
        return super().places(machine) or [
            name for name in machine.names("/proc/[0-9]*/comm") if self._is_daemon(machine, name)
        ]

    def value(self, machine: Machine, place: str) -> str:
        """Return active for a daemon that runs."""
        if place.startswith("/"):
            return "active" if self._is_daemon(machine, place) else ""
        return super().value(machine, place)

    def write(self, machine: Machine, place: str, value: str) -> None:
        """Start or stop the unit; a daemon without a unit is its owner's to stop."""
        if place.startswith("/"):
            raise OSError(f"no systemd here: stop {machine.text(place) or place} by hand")
        super().write(machine, place, value)

    def _is_daemon(self, machine: Machine, place: str) -> bool:
        return machine.text(place) in self._DAEMONS


#: In the order of tuning. SMT comes last, because switching it takes the places of other knobs
#: away, and is therefore restored first.
KNOBS: Final[tuple[Knob, ...]] = (
    Governor(),
    Turbo(),
    HugePages(),
    Swappiness(),
    AddressRandomisation(),
    NumaBalancing(),
    SessionGroups(),
    IdleStates(),
    Timers(),
    Cron(),
    Smt(),
)
