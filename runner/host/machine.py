"""Machine: the one seam through which the host's files and its service manager are reached.

A folder that looks like `/` goes in; texts come out. What cannot be read is an empty text, because
half of these files exist on half of the machines only; what cannot be written is an OSError.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runner import shell

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Enough for a service manager that is busy; stopping a timer takes milliseconds.
COMMAND_TIMEOUT_S: Final = 30.0
_ONLINE: Final = "/sys/devices/system/cpu/online"


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A host as its file tree below `root`."""

    root: Path = Path("/")

    def path(self, name: str) -> Path:
        """Return where the host's file `name` lies."""
        return self.root / name.lstrip("/")

    def text(self, name: str) -> str:
        """Return a file's text without surrounding blanks, or an empty text."""
        try:
            return self.path(name).read_text(errors="replace").strip()
        except OSError:
            return ""

    def number(self, name: str) -> int | None:
        """Return the whole number that a file holds, or None."""
        try:
            return int(self.text(name))
        except ValueError:
            return None

    def names(self, pattern: str) -> Sequence[str]:
        """Return the host's files that match a pattern, in order, as names from the root."""
        found = self.root.glob(pattern.lstrip("/"))
        return sorted(f"/{path.relative_to(self.root)}" for path in found)

    def put(self, name: str, value: str) -> None:
        """Write a value into an existing file.

        Raises:
            OSError: It is not there, may not be written, or the kernel refuses the value.
        """
        # A file that has to be made is none of the kernel's.
        with self.path(name).open("r+") as file:
            file.write(value)
            file.truncate()

    def command(self, argv: Sequence[str]) -> shell.Completed | None:
        """Return how a program of the host ended, or None where it is not installed."""
        if shutil.which(argv[0]) is None:
            return None
        return shell.run(argv, timeout_s=COMMAND_TIMEOUT_S)

    def boot(self) -> str:
        """Return what tells this boot from every other; empty where the kernel does not say."""
        return self.text("/proc/sys/kernel/random/boot_id")

    def online(self) -> Sequence[int]:
        """Return the processors that are running."""
        return cpu_list(self.text(_ONLINE)) or (0,)

    def virtualised(self) -> bool:
        """Whether a hypervisor is underneath."""
        if self.text("/sys/hypervisor/type"):
            return True
        flags = self.cpuinfo("flags").split()
        # ARM has no such flag; its guests are told apart by the firmware's vendor.
        vendor = self.text("/sys/class/dmi/id/sys_vendor").lower()
        return "hypervisor" in flags or any(name in vendor for name in _GUEST_VENDORS)

    def cpuinfo(self, key: str) -> str:
        """Return the first value of a key in /proc/cpuinfo."""
        for line in self.text("/proc/cpuinfo").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == key:
                return value.strip()
        return ""


_GUEST_VENDORS: Final = ("qemu", "vmware", "xen", "innotek", "parallels", "microsoft corporation")


def cpu_list(text: str) -> tuple[int, ...]:
    """Return the processors of a kernel list such as `0-3,8`, in order; wrong text gives none."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit() and (last.isdigit() or not last):
            found |= set(range(int(first), int(last or first) + 1))
    return tuple(sorted(found))


def show_cpus(cpus: Sequence[int]) -> str:
    """Return processors as a kernel list: the way back from `cpu_list`."""
    parts: list[str] = []
    rest = sorted(cpus)
    while rest:
        end = 0
        while end + 1 < len(rest) and rest[end + 1] == rest[end] + 1:
            end += 1
        parts.append(str(rest[0]) if end == 0 else f"{rest[0]}-{rest[end]}")
        rest = rest[end + 1 :]
    return ",".join(parts)
