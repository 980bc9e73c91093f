"""MariaDB and MySQL servers: an `Engine` for MariaDB 10.1 on, MySQL 5.7 on, and MyRocks in both.

Versions differ in the script that makes a data directory, in options and in counters; each
difference is found out from the artifact or the server itself where that is possible.
"""

from __future__ import annotations

import re
import socket
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from runner import leavings, shell, watchdog
from runner.errors import DatasetError
from runner.sandbox import INSIDE, Bind, Sandbox
from runner.servers import bases, innodb, myrocks, programs, serving, session
from runner.servers.engine import OptionValue, RunningServer, ServerSpec, with_options
from runner.servers.settle import Settled, settled
from workloads import tpcc
from workloads.workload import DatasetKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from runner.servers.engine import Engine
    from workloads.plan import DatasetPlan

__all__ = [
    "OptionValue",
    "RunningServer",
    "ServerSpec",
    "data_bytes",
    "data_format",
    "format_options",
    "greeting",
    "initialise",
    "option_words",
    "redo_bytes",
    "rows",
    "running",
    "settle",
    "status",
    "sysbench_words",
    "version",
    "with_options",
]

INITIALISE_TIMEOUT_S: Final = 300.0
#: First byte of the greeting of protocol 10; an error packet begins with 0xff instead.
_PROTOCOL_10: Final = 10

#: Bytes that one loaded row takes with its two indexes, and what a small table takes at least more:
#: measured with MariaDB 10.11, 200,000 and 8,000,000 rows (docs/datasets.md).
_ROW_BYTES: Final = 240
_TABLE_BYTES: Final = 8_000_000
#: The same in MyRocks, compacted and not compressed: measured with MariaDB 11.8, 200,000 rows.
_ROCKSDB_ROW_BYTES: Final = 215
#: An empty data directory without its redo log. Measured: 18 MB with MariaDB 10.11, 49 MB since 11
#: made three undo tablespaces, 85 MB with MySQL 8.0.31.
_EMPTY_BYTES: Final = {"mariadb": 24_000_000, "mysql": 120_000_000}
_MARIADB_11_BYTES: Final = 54_000_000
_MARIADB_11: Final = 11
_REDO_BYTES: Final = {"mariadb": 96 * 1024**2, "mysql": 100 * 1024**2}
#: Undo and the redo of what is not flushed yet, while it is being loaded; MyRocks keeps a
#: compaction's input until its output is there.
_LOADING: Final = {"innodb": 1.1, "rocksdb": 2.1}
_UNITS: Final = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_SIZE: Final = re.compile(r"(\d+)([kmgt]?)", re.IGNORECASE)
_VERSION: Final = re.compile(r"Ver (\d+)\.(\d+)\.(\d+)")

#: Options that decide how data files are written; others may differ between users of a snapshot.
_FORMAT_OPTIONS: Final = frozenset(
    {
        "character_set_server",
        "collation_server",
        "default_storage_engine",
        "innodb_checksum_algorithm",
        "innodb_data_file_path",
        "innodb_default_row_format",
        "innodb_file_per_table",
        "innodb_log_file_size",
        "innodb_log_files_in_group",
        "innodb_page_size",
        "innodb_redo_log_capacity",
        "innodb_undo_tablespaces",
        "lower_case_table_names",
        "rocksdb_default_cf_options",
        "rocksdb_override_cf_options",
    }
)
#: Those of them that a data directory has to be made with, because it cannot change them later.
_AT_FIRST: Final = (
    "innodb_checksum_algorithm",
    "innodb_data_file_path",
    "innodb_page_size",
    "innodb_undo_tablespaces",
    "lower_case_table_names",
)
#: Where trees keep the scripts and messages of a server, below the folder above its program's.
_INSTALL_SCRIPTS: Final = (
    "scripts/mariadb-install-db",
    "bin/mariadb-install-db",
    "scripts/mysql_install_db",
    "bin/mysql_install_db",
)
_MESSAGES: Final = ("share/english", "share/mysql/english", "share/mariadb/english")
_PLUGINS: Final = ("lib/plugin", "lib/mysql/plugin", "lib64/mysql/plugin")
#: Options of the script that makes MariaDB's data directory, where it knows them: a root user
#: without a password, and no test database. What it does not know, it hands on to the server.
_SCRIPT_OPTIONS: Final = ("--auth-root-authentication-method=normal", "--skip-test-db")


def version(spec: ServerSpec) -> str:
    """Return what the server program says about its version.

    Raises:
        DatasetError: It does not run or does not say.
    """
    words = [*programs.words(spec, spec.program), "--no-defaults", "--version"]
    sandbox = Sandbox(binds=programs.view(spec), limits=spec.limits)
    done = sandbox.run(words, timeout_s=60)
    if not done.ok or _VERSION.search(done.stdout) is None:
        raise DatasetError(
            "start", "the server does not tell its version", done.stdout + done.stderr
        )
    return done.stdout.strip()[:500]


def data_format(spec: ServerSpec) -> str:
    """Return the format of a data directory: a release series, or a MySQL release from 8.0 on.

    Since 8.0, MySQL upgrades its dictionary when it starts, and refuses that of a later release.
    """
    found = _VERSION.search(version(spec))
    assert found is not None, "version checks this"
    series, patch = (int(found.group(1)), int(found.group(2))), found.group(3)
    release = f"{spec.engine}-{series[0]}.{series[1]}"
    return f"{release}.{patch}" if spec.engine == "mysql" and series >= (8, 0) else release


def format_options(spec: ServerSpec) -> Mapping[str, OptionValue]:
    """Return the options that decide the bytes of a data directory."""
    return bases.chosen(spec, _FORMAT_OPTIONS)


def data_bytes(spec: ServerSpec, plan: DatasetPlan) -> int:
    """Return about how large the data directory becomes while the dataset is loaded."""
    rocksdb = plan.storage_engine == "rocksdb"
    if plan.kind is DatasetKind.TPCC:
        table = tpcc.data_bytes(plan.scale)
    else:
        table = plan.rows * (_ROCKSDB_ROW_BYTES if rocksdb else _ROW_BYTES) + _TABLE_BYTES
    loaded = plan.tables * table + _empty_bytes(spec)
    return int(loaded * _LOADING["rocksdb" if rocksdb else "innodb"]) + redo_bytes(spec)


def _empty_bytes(spec: ServerSpec) -> int:
    # Where nobody has asked the program yet, the older ones count.
    found = _VERSION.search(spec.installed.facts.server_version)
    if spec.engine == "mariadb" and found and int(found.group(1)) >= _MARIADB_11:
        return _MARIADB_11_BYTES
    return _EMPTY_BYTES[spec.engine]


def redo_bytes(spec: ServerSpec) -> int:
    """Return the size of the redo log, which is reserved when the data directory is made."""
    named = {bases.plain(name): value for name, value in bases.options(spec).items()}
    for name in ("innodb_redo_log_capacity", "innodb_log_file_size"):
        match = _SIZE.fullmatch(str(named.get(name, "")))
        if match is not None:
            files = named.get("innodb_log_files_in_group", 1) if "file" in name else 1
            return int(match.group(1)) * _UNITS[match.group(2).lower()] * int(files)
    return _REDO_BYTES[spec.engine]


def initialise(spec: ServerSpec, data: Path) -> None:
    """Make an empty data directory at `data`.

    Raises:
        DatasetError: The engine's own tool failed; carries the end of its output.
    """
    launch = Path(tempfile.mkdtemp(prefix=watchdog.SCRATCH))
    try:
        launcher = launch / "server"
        # What makes MariaDB's data directory takes one word for the server, not several.
        launcher.write_text(programs.script(spec, spec.program))
        launcher.chmod(0o755)
        launch.chmod(0o755)
        binds = serving.view(spec, data, Bind(host=launch, inside="launch"))
        environment = {"MYSQLD_BOOTSTRAP": str(INSIDE / "launch" / launcher.name)}
        sandbox = Sandbox(binds=binds, environment=environment, limits=spec.limits)
        done = sandbox.run(_initialising(spec), timeout_s=INITIALISE_TIMEOUT_S)
    finally:
        leavings.remove(launch)
    if not done.ok:
        text = shell.readable((done.stdout + done.stderr)[-shell.TAIL_BYTES :])
        why = f": {done.stopped_by}" if done.stopped_by else ""
        raise DatasetError("dataset", f"the data directory could not be initialised{why}", text)


def _initialising(spec: ServerSpec) -> list[str]:
    """Return the words that make a data directory."""
    given = _option_words(bases.chosen(spec, _AT_FIRST))
    if spec.engine == "mysql":
        words = [*programs.words(spec, spec.program), "--no-defaults", "--initialize-insecure"]
        return [*words, f"--datadir={INSIDE / 'data'}", *_tree_words(spec), *given]
    script, basedir, text = _install_script(spec)
    words = [script, "--no-defaults", f"--basedir={basedir}", f"--datadir={INSIDE / 'data'}"]
    words += [word for word in _SCRIPT_OPTIONS if word.partition("=")[0] in text]
    # Forced: without a network the script cannot look up the host's name, and need not.
    return [*words, "--force", *given]


def _install_script(spec: ServerSpec) -> tuple[str, Path, str]:
    """Return the script that makes a data directory, the base directory it belongs to, its text."""
    found = programs.first_of(spec, *_INSTALL_SCRIPTS)
    if spec.install_db is not None:
        script, basedir = spec.install_db, programs.base(spec)
    elif found is not None:
        script, basedir = str(found), programs.base(spec)
    else:
        system = shell.require("mariadb-install-db", package="mariadb-server")
        return system, Path("/usr"), Path(system).read_text(errors="replace")
    text = (spec.installed.folder / script).read_text(errors="replace")
    return str(programs.inside(script)), programs.inside(basedir), text


@contextmanager
def running(
    spec: ServerSpec, data: Path, *, cpus: Sequence[int], loading: bool = False
) -> Iterator[RunningServer]:
    """Start a server on `data` and give it once it answers; stop it at the end.

    Raises:
        ServerError: It ended or did not answer in time (stage `start`), or died while it was in
            use or did not stop in time (stage `stop`); carries the end of its error log.
    """
    if loading:
        # A full shutdown leaves nothing to purge, merge or recover in the snapshot.
        spec = with_options(spec, {"innodb_fast_shutdown": 0})
    how = serving.Serving(
        engine=_ITSELF, words=_words(spec), socket="server.sock", greeting=greeting
    )
    with serving.serve(how, spec, data, cpus=cpus, loading=loading) as server:
        yield server


def _words(spec: ServerSpec) -> list[str]:
    own: dict[str, OptionValue] = {
        "datadir": str(INSIDE / "data"),
        "socket": str(INSIDE / "run" / "server.sock"),
        "pid-file": str(INSIDE / "run" / "server.pid"),
        "tmpdir": "/tmp",  # noqa: S108  the sandbox's own
    }
    if spec.engine == "mysql":
        # 5.7 has the X plugin, but not built in.
        own |= {"loose-mysqlx": False, "secure-file-priv": ""}
    words = [*programs.words(spec, spec.program), "--no-defaults", "--skip-networking"]
    return [*words, *_tree_words(spec), *_option_words(own), *option_words(spec)]


def _tree_words(spec: ServerSpec) -> list[str]:
    """Return where the server finds what came with it, which may not be where it was built for."""
    messages = programs.first_of(spec, *_MESSAGES)
    plugins = programs.first_of(spec, *_PLUGINS)
    words = []
    if messages is not None or spec.engine == "mysql":
        words += [f"--basedir={programs.inside(programs.base(spec))}"]
    if messages is not None:
        words += [f"--lc-messages-dir={programs.inside(messages.parent)}"]
        charsets = messages.parent / "charsets"
        if (spec.installed.folder / charsets).is_dir():
            words += [f"--character-sets-dir={programs.inside(charsets)}"]
    return [*words, f"--plugin-dir={programs.inside(plugins)}"] if plugins else words


def option_words(spec: ServerSpec) -> list[str]:
    """Return the base's and the plan's options as words of a command line."""
    return _option_words(bases.options(spec))


def _option_words(options: Mapping[str, OptionValue]) -> list[str]:
    return [_option_word(name, value) for name, value in options.items()]


def _option_word(name: str, value: OptionValue) -> str:
    if isinstance(value, bool):
        if bases.plain(name) == "log_bin" and "skip" not in name:
            # Its value is a file's name: ON would be one.
            return "--log-bin=binlog" if value else "--skip-log-bin"
        if value and name.replace("-", "_").startswith("skip_"):
            return f"--{name}"
    shown = ("ON" if value else "OFF") if isinstance(value, bool) else value
    return f"--{name}={shown}"


def greeting(path: Path) -> str:
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


def rows(server: RunningServer, statement: str) -> list[tuple[str, ...]]:
    """Return what the server answers to one SQL statement, as text; NULL is the word NULL.

    Raises:
        ServerError: It refused the statement or did not answer; carries what it said.
    """
    return session.rows(server, statement)


def status(server: RunningServer) -> Mapping[str, int]:
    """Return every status counter that is a number, by lower-case name.

    Raises:
        ServerError: As `rows`.
    """
    return session.status(server)


def settle(server: RunningServer, *, timeout_s: float) -> Settled:
    """Wait until the server has no background work left, hurrying it on.

    Raises:
        ServerError: It refused a statement.
    """
    began = time.monotonic()
    until = began + timeout_s
    left = []
    if not server.loading:
        # The full shutdown after a load writes and purges everything.
        left.append(innodb.settle(server, until=until))
    if server.spec.storage_engine == "rocksdb":
        left.append(myrocks.settle(server, until=until))
    return settled(began, ", ".join(text for text in left if text))


def sysbench_words(server: RunningServer, *, database: str) -> list[str]:
    """Return the words that make sysbench talk to this server."""
    return [
        "--db-driver=mysql",
        f"--mysql-socket={INSIDE}/run/{server.socket.name}",
        "--mysql-user=root",
        f"--mysql-db={database}",
    ]


#: The module as an engine.
_ITSELF: Final = cast("Engine", sys.modules[__name__])
