"""MariaDB and MySQL servers as context managers.

A server runs from its artifact inside the sandbox, on a Unix socket in a private directory, pinned
to its processors. Leaving the context stops it cleanly, or kills it when it does not stop; a killed
runner takes it along, because the sandbox dies with its parent.
"""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from runner import leavings, shell
from runner.errors import DatasetError, ServerError, StageError
from runner.limits import Limits
from runner.limits import limits as usual_limits
from runner.sandbox import INSIDE, Bind, Sandbox, hand_over

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from runner.build import Installed
    from runner.warden import Verdicts

READY_TIMEOUT_S: Final = 120.0
STOP_TIMEOUT_S: Final = 120.0
INITIALISE_TIMEOUT_S: Final = 300.0
_POLL_S: Final = 0.02
#: First byte of the greeting of protocol 10; an error packet begins with 0xff instead.
_PROTOCOL_10: Final = 10

#: Bytes that one loaded row takes with its two indexes, and what a small table takes at least more:
#: measured with MariaDB 10.11, 200,000 and 8,000,000 rows (docs/datasets.md).
_ROW_BYTES: Final = 240
_TABLE_BYTES: Final = 8_000_000
#: An empty data directory without its redo log. MariaDB measured (18 MB); MySQL by its manual: two
#: undo tablespaces, a doublewrite file, the dictionary, and ibdata1.
_EMPTY_BYTES: Final = {"mariadb": 24_000_000, "mysql": 120_000_000}
_REDO_BYTES: Final = {"mariadb": 96 * 1024**2, "mysql": 100 * 1024**2}
#: Undo and the redo of what is not flushed yet, while it is being loaded.
_LOADING: Final = 1.1
_UNITS: Final = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_SIZE: Final = re.compile(r"(\d+)([kmgt]?)", re.IGNORECASE)

OptionValue = str | int | float | bool


@dataclass(frozen=True, kw_only=True)
class ServerSpec:
    """What to run and how: an artifact, its program and its options."""

    engine: str
    installed: Installed
    #: Server program relative to the install prefix.
    program: str
    #: Script that makes a data directory, relative to the prefix; the system's where None.
    install_db: str | None
    options: Mapping[str, OptionValue]
    #: What it may use of the machine.
    limits: Limits = field(default_factory=usual_limits)


@dataclass(frozen=True, kw_only=True)
class RunningServer:
    """A server that answers."""

    socket: Path
    #: Process ids of the server on the host, without the sandbox around it.
    pids: tuple[int, ...]
    version: str
    error_log: Path


def initialise(spec: ServerSpec, data: Path) -> None:
    """Make an empty data directory at `data`.

    Raises:
        DatasetError: The engine's own tool failed; carries the end of its output.
    """
    program = str(INSIDE / "artifact" / spec.program)
    environment: dict[str, str] = {}
    if spec.engine == "mysql":
        words = [program, "--no-defaults", "--initialize-insecure", f"--datadir={INSIDE / 'data'}"]
    else:
        script, basedir = _install_script(spec)
        words = [script, "--no-defaults", f"--basedir={basedir}", f"--datadir={INSIDE / 'data'}"]
        # Forced: without a network the script cannot look up the host's name, and need not.
        words += ["--auth-root-authentication-method=normal", "--skip-test-db", "--force"]
        environment["MYSQLD_BOOTSTRAP"] = program
    sandbox = Sandbox(binds=_binds(spec, data), environment=environment, limits=spec.limits)
    done = sandbox.run(words, timeout_s=INITIALISE_TIMEOUT_S)
    if not done.ok:
        text = shell.readable((done.stdout + done.stderr)[-shell.TAIL_BYTES :])
        why = f": {done.stopped_by}" if done.stopped_by else ""
        raise DatasetError("dataset", f"the data directory could not be initialised{why}", text)


def data_bytes(spec: ServerSpec, *, tables: int, rows: int) -> int:
    """Return about how large the data directory becomes while `rows` are loaded into each table."""
    loaded = tables * (rows * _ROW_BYTES + _TABLE_BYTES) + _EMPTY_BYTES[spec.engine]
    return int(loaded * _LOADING) + redo_bytes(spec)


def redo_bytes(spec: ServerSpec) -> int:
    """Return the size of the redo log, which is reserved when the data directory is made."""
    named = {name.replace("-", "_"): value for name, value in spec.options.items()}
    for name in ("innodb_redo_log_capacity", "innodb_log_file_size"):
        match = _SIZE.fullmatch(str(named.get(name, "")))
        if match is not None:
            files = named.get("innodb_log_files_in_group", 1) if "file" in name else 1
            return int(match.group(1)) * _UNITS[match.group(2).lower()] * int(files)
    return _REDO_BYTES[spec.engine]


def program_view(spec: ServerSpec) -> tuple[Bind, ...]:
    """Return what a sandbox has to show for the server program to run without data."""
    return (Bind(host=spec.installed.folder, inside="artifact"),)


def with_options(spec: ServerSpec, options: Mapping[str, OptionValue]) -> ServerSpec:
    """Return the same server with some options set differently."""
    return replace(spec, options={**spec.options, **options})


def _install_script(spec: ServerSpec) -> tuple[str, Path]:
    """Return mariadb-install-db and the base directory it belongs to."""
    if spec.install_db is not None:
        return str(INSIDE / "artifact" / spec.install_db), INSIDE / "artifact"
    for name in ("scripts/mariadb-install-db", "bin/mariadb-install-db"):
        if (spec.installed.folder / name).exists():
            return str(INSIDE / "artifact" / name), INSIDE / "artifact"
    return shell.require("mariadb-install-db", package="mariadb-server"), Path("/usr")


def _binds(spec: ServerSpec, data: Path, run: Path | None = None) -> tuple[Bind, ...]:
    binds = [*program_view(spec), Bind(host=data, inside="data", writable=True)]
    if run is not None:
        binds.append(Bind(host=run, inside="run", writable=True))
    return tuple(binds)


@contextmanager
def running(spec: ServerSpec, data: Path, *, cpus: Sequence[int]) -> Iterator[RunningServer]:
    """Start a server on `data` and give it once it answers; stop it at the end.

    Raises:
        ServerError: It ended or did not answer in time (stage `start`), or died while it was in
            use or did not stop in time (stage `stop`); carries the end of its error log.
    """
    # A socket's path may have 108 bytes, which a home folder easily exceeds.
    scratch = Path(tempfile.mkdtemp(prefix="forkwatch-"))
    run = scratch / "run"
    run.mkdir()
    # Not where the server could put something else in its place.
    log = scratch / "error.log"
    hand_over(run)
    sandbox = Sandbox(binds=_binds(spec, data, run), limits=spec.limits)
    try:
        with (
            sandbox.running(_words(spec), log=log, cpus=cpus) as (process, verdicts),
            _naming_the_limit(verdicts, log),
        ):
            version = wait_until_ready(process, run / "server.sock", log)
            pids = _inner_pids(process.pid)
            yield RunningServer(
                socket=run / "server.sock", pids=pids, version=version, error_log=log
            )
            _stop(process, pids, log)
    finally:
        leavings.remove(scratch)


@contextmanager
def _naming_the_limit(verdicts: Verdicts, log: Path) -> Iterator[None]:
    """Say which limit ended the server, where one did, instead of what that led to."""
    try:
        yield
    except StageError as error:
        reason = verdicts.reason()
        if not reason:
            raise
        stage = error.stage if isinstance(error, ServerError) else "measure"
        raise ServerError(stage, f"the server was ended: {reason}", shell.tail(log)) from error


def _words(spec: ServerSpec) -> list[str]:
    options: dict[str, OptionValue] = {
        "datadir": str(INSIDE / "data"),
        "socket": str(INSIDE / "run" / "server.sock"),
        "pid-file": str(INSIDE / "run" / "server.pid"),
        "tmpdir": "/tmp",  # noqa: S108  the sandbox's own
    }
    if spec.engine == "mysql":
        options |= {"mysqlx": False, "secure-file-priv": ""}
    words = [str(INSIDE / "artifact" / spec.program), "--no-defaults", "--skip-networking"]
    for name, value in {**options, **spec.options}.items():
        shown = ("ON" if value else "OFF") if isinstance(value, bool) else value
        words.append(f"--{name}={shown}")
    return words


def wait_until_ready(process: shell.Process, path: Path, log: Path) -> str:
    """Return the server's version as soon as it greets a client."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        status = process.poll()
        if status is not None:
            raise ServerError("start", f"the server ended with {status}", shell.tail(log))
        version = _greeting(path)
        if version:
            return version
        time.sleep(_POLL_S)
    raise ServerError(
        "start", f"the server did not answer within {READY_TIMEOUT_S:.0f} s", shell.tail(log)
    )


def _greeting(path: Path) -> str:
    """Return the version in the server's greeting, or an empty text while there is none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(1.0)
        try:
            client.connect(str(path))
            packet = client.recv(256)
        except OSError:
            return ""
    # Four bytes of header, the protocol's number, then the version up to a zero byte.
    if len(packet) < 6 or packet[4] != _PROTOCOL_10:  # noqa: PLR2004  header, number, one character
        return ""
    return packet[5:].split(b"\0", 1)[0].decode(errors="replace")


def _inner_pids(outer: int) -> tuple[int, ...]:
    """Return the server's processes below the sandbox's own two."""
    children = psutil.Process(outer).children(recursive=True)
    return tuple(child.pid for child in children if child.name() != "bwrap")


def _runs(pid: int) -> bool:
    """Whether a process is there and not merely waiting to be reaped."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _stop(process: shell.Process, pids: tuple[int, ...], log: Path) -> None:
    """Ask the server to end and wait for it."""
    if process.poll() is not None or not all(_runs(pid) for pid in pids):
        raise ServerError("measure", "the server died", shell.tail(log))
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(pid).send_signal(signal.SIGTERM)
    status = process.wait(STOP_TIMEOUT_S)
    if status is None:
        raise ServerError(
            "stop", f"the server did not stop within {STOP_TIMEOUT_S:.0f} s", shell.tail(log)
        )
    # Killed a moment before we asked, it may still have looked alive.
    if status != 0:
        raise ServerError("stop", f"the server died with status {status}", shell.tail(log))
