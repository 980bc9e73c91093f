"""The sandbox: how code of a fork is configured, built and run.

bubblewrap gives it no network, no home, a read-only system, and user, PID and IPC namespaces of its
own; limits bound what it uses of the machine (docs/sandbox.md). Paths inside are always the same
(`/forkwatch/...`), so that compilers, caches and installed files see no trace of where on the host
they are: equal sources give equal binaries and every compiler cache hit that is possible.
Everything inside dies with the runner: bubblewrap sees to it, and the watchdog where bubblewrap
could not yet.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runner import cgroup, first_process, shell, syscalls, warden, watchdog
from runner.limits import MIB, Limits
from runner.limits import limits as usual_limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: Root of everything of ours inside the sandbox.
INSIDE: Final = Path("/forkwatch")
#: User and group inside, and on the host where the runner is root: nobody else's, so that code
#: inside owns nothing of the host's, not even /dev/null. In no range that Debian gives out.
USER_ID: Final = 64_200
#: Made-up build date: __DATE__ and __TIME__ must not make two builds of one source differ.
SOURCE_DATE_EPOCH: Final = "1600000000"

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Parts of /etc that programs need to be found, linked and given a user name.
_ETC: Final = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "ssl")
#: What servers look up about devices, processors and memory, and would guess without: MariaDB takes
#: the block size of its redo log from there, and wrote it in blocks of 512 bytes instead of 4096.
#: Firmware, kernel settings and file systems stay out of sight.
_SYS: Final = ("block", "bus", "class", "dev", "devices", "kernel/mm/transparent_hugepage")
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
#: Number of the descriptor that bubblewrap reads the filter of system calls from.
_FILTER_DESCRIPTOR: Final = 9
#: Bytes in /var/tmp and in /run: programs leave small files there.
_SMALL_FOLDER_BYTES: Final = 64 * MIB
#: Where the kernel runs out of memory, it ends what is in a sandbox before anything else.
_FIRST_TO_GO: Final = ("choom", "--adjust", "1000", "--")
#: Shell words that open the filter $0 for the program behind them.
_WITH_FILTER: Final = f'exec {_FILTER_DESCRIPTOR}< "$0" && exec "$@"'


@dataclass(frozen=True, kw_only=True)
class Bind:
    """A folder or file of the host that is visible inside."""

    host: Path
    #: Relative to `INSIDE`.
    inside: str
    writable: bool = False


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    """What is visible inside, the environment there, and what it may use."""

    binds: tuple[Bind, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=usual_limits)
    #: How far everything inside steps back for others: thousands of busy processes must not keep
    #: the warden from its look. Never for what is measured.
    niceness: int = 0
    #: Whether calls to rare parts of the kernel are refused. Only programs of our own go without:
    #: the filter costs every call 30 ns, and a client's point queries 2.3 % (decision 0011).
    filtered: bool = True
    #: Whether what lies in the writable folders already counts against the limits.
    counts_all: bool = False
    #: Writable folders that may hold so many bytes in all, whatever the limits say.
    ceilings: Mapping[Path, int] = field(default_factory=dict)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        log: Path | None = None,
        cpus: Sequence[int] = (),
    ) -> shell.Completed:
        """Run a program inside to its end, watched, and return how it ended.

        Everything inside is gone when this returns.

        Raises:
            HostError: bubblewrap is not installed.
        """
        with cgroup.own(self.limits) as own, first_process.awaited(warden.END_S) as report:
            done = shell.run(
                [*_entering(own), *self.command(argv, cpus=cpus, report=report)],
                descriptors=[report],
                timeout_s=timeout_s,
                log=log,
                output_bytes_max=self.limits.log_bytes.value if log else shell.OUTPUT_BYTES_MAX,
                watch=self._warden(own).look,
                end=warden.end,
            )
            reason = (own.reason() if own and not done.ok else "") or done.stopped_by
        if reason == shell.OUTPUT_FULL and log:
            reason += self.limits.log_bytes.advice()
        return replace(done, stopped_by=reason)

    @contextmanager
    def running(
        self, argv: Sequence[str], *, log: Path, cpus: Sequence[int] = ()
    ) -> Iterator[tuple[shell.Process, warden.Verdicts]]:
        """Start a program inside that goes on running, watched, and end it with the context.

        Its output is appended to `log`, which must not lie in a writable folder.

        Raises:
            HostError: bubblewrap is not installed.
        """
        with cgroup.own(self.limits) as own:
            command = [*_entering(own), *self.command(argv, cpus=cpus)]
            with log.open("ab") as output:
                process = shell.start(command, output=output)
            try:
                with warden.watching(process, self._warden(own, log)) as verdicts:
                    yield process, verdicts
            finally:
                warden.end(process)

    def _warden(self, own: cgroup.Cgroup | None, log: Path | None = None) -> warden.Warden:
        folders = [bind.host for bind in self.binds if bind.writable]
        return warden.Warden(
            self.limits,
            [folder for folder in folders if folder not in self.ceilings],
            counts_all=self.counts_all,
            ceilings=self.ceilings,
            log=log,
            own=own,
        )

    def command(
        self, argv: Sequence[str], *, cpus: Sequence[int] = (), report: int | None = None
    ) -> list[str]:
        """Return the command line that runs `argv` inside, pinned to `cpus` if there are any.

        The limits that need somebody to look are not in it: see `run` and `running`. bubblewrap
        writes the number of process 1 to the descriptor `report`.

        Raises:
            HostError: bubblewrap is not installed.
        """
        words = []
        if cpus:
            pinned = ",".join(str(cpu) for cpu in cpus)
            words += [shell.require("taskset", package="util-linux"), "--cpu-list", pinned]
        if self.niceness:
            words += ["nice", f"--adjustment={self.niceness}"]
        # Process 1 inside is bubblewrap, and what it was started with can be read there.
        words += ["env", "--ignore-environment", f"PATH={_PATH}"]
        filter_file = syscalls.program_file() if self.filtered else ""
        if filter_file:
            words += ["sh", "-c", _WITH_FILTER, filter_file]
        words += [shell.require("bwrap", package="bubblewrap")]
        if filter_file:
            words += ["--seccomp", str(_FILTER_DESCRIPTOR)]
        if report is not None:
            words += ["--info-fd", str(report)]
        words += ["--die-with-parent", "--new-session", "--clearenv"]
        words += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
        words += ["--unshare-cgroup-try", *_USER_WORDS[_is_root()]]
        words += _system_view(self.limits)
        for bind in self.binds:
            option = "--bind" if bind.writable else "--ro-bind"
            words += [option, str(bind.host), str(INSIDE / bind.inside)]
        # Folders made for the mounts are in memory that nobody counts.
        words += ["--remount-ro", "/"]
        environment = {
            "PATH": _PATH,
            "HOME": "/tmp",  # noqa: S108  the sandbox's own empty /tmp
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH,
            watchdog.VARIABLE: watchdog.MARK,
            **self.environment,
        }
        for name, value in environment.items():
            words += ["--setenv", name, value]
        words += ["--chdir", str(INSIDE), "--", *_BECOME_USER[_is_root()]]
        return [*words, *_FIRST_TO_GO, *self.limits.resource_words(), *argv]


def _entering(own: cgroup.Cgroup | None) -> list[str]:
    return own.enter_words() if own else []


def _system_view(limits: Limits) -> list[str]:
    words = ["--ro-bind", "/usr", "/usr", "--dev", "/dev", "--proc", "/proc", "--dir", str(INSIDE)]
    # Empty, the sandbox's own, and open to its user.
    for folder, size in (
        ("/tmp", limits.tmp_bytes.value),  # noqa: S108  inside
        ("/dev/shm", limits.tmp_bytes.value),  # noqa: S108  inside
        ("/var/tmp", _SMALL_FOLDER_BYTES),  # noqa: S108  inside
        ("/run", _SMALL_FOLDER_BYTES),
    ):
        words += ["--perms", "1777", "--size", str(size), "--tmpfs", folder]
    words += ["--remount-ro", "/dev"]
    # Folders that bubblewrap makes by the way are closed to others.
    for folder in ("/etc", "/sys", "/sys/kernel", "/sys/kernel/mm"):
        words += ["--perms", "0755", "--dir", folder]
    for name in _SYS:
        path = Path("/sys") / name
        if path.exists():
            words += ["--ro-bind", str(path), str(path)]
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
    """Make a folder and all in it writable for code in the sandbox.

    Nothing may run in it yet, and nothing in it is followed.
    """
    if not _is_root():
        return
    os.chown(folder, USER_ID, USER_ID, follow_symlinks=False)
    for parent, folders, files, descriptor in os.fwalk(folder):
        del parent
        for name in (*folders, *files):
            os.chown(name, USER_ID, USER_ID, dir_fd=descriptor, follow_symlinks=False)


def hand_over_top(folder: Path) -> None:
    """Make a folder writable for code in the sandbox, without what lies in it.

    For a folder that other sandboxes may be writing in at this moment.
    """
    if _is_root():
        os.chown(folder, USER_ID, USER_ID, follow_symlinks=False)


def works() -> str:
    """Return an empty text if the sandbox works here, else why it does not."""
    probe = Sandbox(binds=()).run(["true"], timeout_s=20)
    return "" if probe.ok else probe.stderr.strip() or f"bwrap ended with {probe.returncode}"
