"""The sandbox: how code of a fork is configured, built and run.

bubblewrap gives it no network, no home, a read-only system, and user, PID and IPC namespaces of its
own. Paths inside are always the same (`/forkwatch/...`), so that compilers, caches and installed
files see no trace of where on the host they are: equal sources give equal binaries and every
compiler cache hit that is possible. Everything inside dies with the runner: bubblewrap sees to it,
and the watchdog where bubblewrap could not yet.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runner import shell, watchdog

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Root of everything of ours inside the sandbox.
INSIDE: Final = Path("/forkwatch")
#: User and group inside, and on the host where the runner is root: nobody else's, so that code
#: inside owns nothing of the host's, not even /dev/null. In no range that Debian gives out.
USER_ID: Final = 64_200
#: Made-up build date: __DATE__ and __TIME__ must not make two builds of one source differ.
SOURCE_DATE_EPOCH: Final = "1600000000"

#: Parts of /etc that programs need to be found, linked and given a user name.
_ETC: Final = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "ssl")
#: Top-level folders that are links into /usr on a merged system, real folders on an old one.
_TOP: Final = ("bin", "sbin", "lib", "lib64")

#: An ordinary user gets a user namespace, in which it has another name but is still itself. Root
#: would still be root on the host, so it makes the mounts and then becomes somebody else for good.
_USER_WORDS: Final = {
    False: ("--unshare-user", "--uid", str(USER_ID), "--gid", str(USER_ID)),
    True: ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"),
}
_BECOME_USER: Final = {
    False: (),
    True: (
        "setpriv",
        f"--reuid={USER_ID}",
        f"--regid={USER_ID}",
        "--clear-groups",
        "--bounding-set=-all",
        "--inh-caps=-all",
        "--no-new-privs",
        "--",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Bind:
    """A folder or file of the host that is visible inside."""

    host: Path
    #: Relative to `INSIDE`.
    inside: str
    writable: bool = False


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    """What is visible inside, and the environment there."""

    binds: tuple[Bind, ...]
    environment: Mapping[str, str] = field(default_factory=dict)

    def command(self, argv: Sequence[str], *, cpus: Sequence[int] = ()) -> list[str]:
        """Return the command line that runs `argv` inside, pinned to `cpus` if there are any.

        Raises:
            HostError: bubblewrap is not installed.
        """
        words = []
        if cpus:
            pinned = ",".join(str(cpu) for cpu in cpus)
            words += [shell.require("taskset", package="util-linux"), "--cpu-list", pinned]
        words += [shell.require("bwrap", package="bubblewrap")]
        words += ["--die-with-parent", "--clearenv"]
        words += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
        words += ["--unshare-cgroup-try", *_USER_WORDS[_is_root()]]
        words += _system_view()
        for bind in self.binds:
            option = "--bind" if bind.writable else "--ro-bind"
            words += [option, str(bind.host), str(INSIDE / bind.inside)]
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/tmp",  # noqa: S108  the sandbox's own empty /tmp
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH,
            watchdog.VARIABLE: watchdog.MARK,
            **self.environment,
        }
        for name, value in environment.items():
            words += ["--setenv", name, value]
        return [*words, "--chdir", str(INSIDE), "--", *_BECOME_USER[_is_root()], *argv]


def _system_view() -> list[str]:
    words = ["--ro-bind", "/usr", "/usr", "--dev", "/dev", "--proc", "/proc", "--dir", str(INSIDE)]
    # Empty, the sandbox's own, and open to its user.
    for folder in ("/tmp", "/var/tmp", "/run"):  # noqa: S108  inside
        words += ["--perms", "1777", "--tmpfs", folder]
    for name in _TOP:
        top = Path("/") / name
        if top.is_symlink():
            words += ["--symlink", str(top.readlink()), str(top)]
        elif top.is_dir():
            words += ["--ro-bind", str(top), str(top)]
    for name in _ETC:
        path = Path("/etc") / name
        if path.exists():
            words += ["--ro-bind", str(path), str(path)]
    return words


def _is_root() -> bool:
    return os.geteuid() == 0


def hand_over(folder: Path) -> None:
    """Make a folder and all in it writable for code in the sandbox."""
    if not _is_root():
        return
    os.chown(folder, USER_ID, USER_ID)
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(Path(parent) / name, USER_ID, USER_ID, follow_symlinks=False)


def works() -> str:
    """Return an empty text if the sandbox works here, else why it does not."""
    probe = shell.run(Sandbox(binds=()).command(["true"]), timeout_s=20)
    return "" if probe.ok else probe.stderr.strip() or f"bwrap ended with {probe.returncode}"
