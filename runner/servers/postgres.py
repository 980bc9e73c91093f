"""PostgreSQL servers: an `Engine` for releases 10 to 18 and the development branch after them.

The server listens on its socket only. All tables lie in one database, in schemas named as the
databases of the MySQL family are, so that `sbtest.sbtest1` is the same name in both.
"""

from __future__ import annotations

import hashlib
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, cast

from runner import leavings, shell, watchdog
from runner.errors import DatasetError, HostError
from runner.sandbox import INSIDE, USER_ID, Bind, Sandbox
from runner.servers import bases, programs, serving, session
from runner.servers.postgres_greeting import DATABASE, USER, greeting
from runner.servers.settle import settled, wait
from workloads.workload import DatasetKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from runner.servers.engine import Engine, OptionValue, RunningServer, ServerSpec
    from runner.servers.settle import Settled
    from workloads.plan import DatasetPlan

INITIALISE_TIMEOUT_S: Final = 300.0
VACUUM_TIMEOUT_S: Final = 600.0
PORT: Final = 5432
_NAMES: Final = {
    "passwd": f"{USER}:x:{USER_ID}:{USER_ID}::/tmp:/bin/sh\n",
    "hosts": "127.0.0.1 localhost\n",
    "nsswitch.conf": "passwd: files\nhosts: files\n",
}
#: Before release 15 a collector process gathers the statistics; what it tells may be half a second
#: old (PGSTAT_STAT_INTERVAL), and a little more.
_STATISTICS_DELAY_S: Final = 0.6
_DELAYED_BEFORE: Final = 15

#: Measured with PostgreSQL 15 (docs/engines.md): a loaded row with its two indexes; an empty data
#: directory without write-ahead log; the write-ahead log that remains at least.
_ROW_BYTES: Final = 270
_EMPTY_BYTES: Final = 40_000_000
_WAL_BYTES_MIN: Final = 2 * 16 * 1024**2
_WAREHOUSE_BYTES: Final = 130_000_000
_UNITS: Final = {"": 1024**2, "kb": 1024, "mb": 1024**2, "gb": 1024**3, "tb": 1024**4}
_SIZE: Final = re.compile(r"(\d+)\s*([kmgt]b|)", re.IGNORECASE)
_WAL_BYTES: Final = 1024**3

#: Such as `15.20 (Debian 15.20-0+deb12u1)`, `18beta1`, `19devel`.
_VERSION: Final = re.compile(r"\(PostgreSQL\) (\d+)(?:\.(\d+))?(devel|alpha|beta|rc)?")
_CATALOG: Final = re.compile(r"CATALOG_VERSION_NO\s+(\d+)")
_CATALOG_FILES: Final = ("include/server", "include/postgresql/server")
#: Releases before 10 counted their series with two numbers.
_ONE_NUMBER_SINCE: Final = 10

#: Where the counters are; those that a release does not have are left out.
_VIEWS: Final[Mapping[str, str]] = {
    "pg_stat_database": "WHERE datname = current_database()",
    "pg_stat_user_tables": "",
    "pg_stat_user_indexes": "",
    "pg_stat_bgwriter": "",
    "pg_stat_checkpointer": "",
    "pg_stat_io": "",
    "pg_stat_wal": "",
}
#: Numbers in them that name something, or say how something is.
_NO_COUNTERS: Final = re.compile(r".*_(?:datid|relid|indexrelid|numbackends|op_bytes|.*_time)")


def version(spec: ServerSpec) -> str:
    """Return what the server program says about its version.

    Raises:
        DatasetError: It does not run or does not say.
    """
    words = [*programs.words(spec, spec.program), "--version"]
    done = Sandbox(binds=programs.view(spec), limits=spec.limits).run(words, timeout_s=60)
    if not done.ok or _VERSION.search(done.stdout) is None:
        raise DatasetError(
            "start", "the server does not tell its version", done.stdout + done.stderr
        )
    return done.stdout.strip()[:500]


def data_format(spec: ServerSpec) -> str:
    """Return the format of a data directory: a major release, or a catalog of a branch under way.

    On such a branch any commit may change the catalog, and says so in a header; where that is not
    installed, no two artifacts share a data directory.
    """
    found = _VERSION.search(version(spec))
    assert found is not None, "version checks this"
    major, minor, under_way = found.groups()
    if int(major) < _ONE_NUMBER_SINCE:
        return f"{spec.engine}-{major}.{minor}"
    if not under_way:
        return f"{spec.engine}-{major}"
    for folder in _CATALOG_FILES:
        header = programs.first_of(spec, f"{folder}/catalog/catversion.h")
        if header is not None:
            text = (spec.installed.folder / header).read_text(errors="replace")
            catalog = _CATALOG.search(text)
            if catalog is not None:
                return f"{spec.engine}-{major}.{catalog.group(1)}"
    digest = hashlib.sha256(spec.installed.facts.content_hash.encode()).digest()
    return f"{spec.engine}-{major}.{int.from_bytes(digest[:6])}"


def format_options(spec: ServerSpec) -> Mapping[str, OptionValue]:
    """Return the options that decide the bytes of a data directory."""
    return bases.chosen(spec, ("default_toast_compression",))


def data_bytes(spec: ServerSpec, plan: DatasetPlan) -> int:
    """Return about how large the data directory becomes while the dataset is loaded."""
    table = plan.rows * _ROW_BYTES
    if plan.kind is DatasetKind.TPCC:
        table = plan.scale * _WAREHOUSE_BYTES
    loaded = plan.tables * table
    # The log of a load is about twice what it loads, until a checkpoint lets it go.
    return loaded + _EMPTY_BYTES + min(redo_bytes(spec), 2 * loaded) + _WAL_BYTES_MIN


def redo_bytes(spec: ServerSpec) -> int:
    """Return how large the write-ahead log may become before a checkpoint."""
    match = _SIZE.fullmatch(str(bases.options(spec).get("max_wal_size", "")).strip())
    return int(match.group(1)) * _UNITS[match.group(2).lower()] if match else _WAL_BYTES


def initialise(spec: ServerSpec, data: Path) -> None:
    """Make an empty data directory at `data`.

    Raises:
        DatasetError: initdb failed; carries the end of its output.
    """
    with _names() as names:
        done = Sandbox(binds=serving.view(spec, data, *names), limits=spec.limits).run(
            _initialising(spec), timeout_s=INITIALISE_TIMEOUT_S
        )
    if not done.ok:
        text = shell.readable((done.stdout + done.stderr)[-shell.TAIL_BYTES :])
        why = f": {done.stopped_by}" if done.stopped_by else ""
        raise DatasetError("dataset", f"the data directory could not be initialised{why}", text)


@contextmanager
def _names() -> Iterator[tuple[Bind, ...]]:
    """Give what a sandbox has to show so that users and hosts have names there.

    initdb insists on a name for whoever runs it. Before release 15 a server sends statistics to
    itself through `localhost`, and goes without them where there is none.
    """
    folder = Path(tempfile.mkdtemp(prefix=watchdog.SCRATCH))
    try:
        binds = []
        for name, text in _NAMES.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o644)
            # An absolute path is one inside.
            binds.append(Bind(host=folder / name, inside=f"/etc/{name}"))
        folder.chmod(0o755)
        yield tuple(binds)
    finally:
        leavings.remove(folder)


def _initialising(spec: ServerSpec) -> list[str]:
    beside = str(PurePosixPath(spec.program).with_name("initdb"))
    words = [*programs.words(spec, spec.install_db or beside), f"--pgdata={INSIDE / 'data'}"]
    words += [f"--username={USER}", "--auth=trust", "--encoding=UTF8", "--locale=C"]
    # The default since 18, and the field's choice before.
    words += ["--data-checksums"]
    # The snapshot is brought to the disk when it is stored.
    return [*words, "--no-sync"]


@contextmanager
def running(
    spec: ServerSpec, data: Path, *, cpus: Sequence[int], loading: bool = False
) -> Iterator[RunningServer]:
    """Start a server on `data` and give it once it answers; stop it at the end.

    Raises:
        ServerError: It ended or did not answer in time (stage `start`), or died while it was in
            use or did not stop in time (stage `stop`); carries the end of its error log.
    """
    with _names() as names:
        how = serving.Serving(
            engine=_ITSELF,
            words=_words(spec, loading=loading),
            socket=f".s.PGSQL.{PORT}",
            greeting=greeting,
            # Fast: sessions are ended, a checkpoint is written.
            stop_signal=signal.SIGINT,
            binds=names,
        )
        with serving.serve(how, spec, data, cpus=cpus, loading=loading) as server:
            yield server


def _words(spec: ServerSpec, *, loading: bool) -> list[str]:
    own: dict[str, OptionValue] = {
        "listen_addresses": "",
        "port": PORT,
        "unix_socket_directories": str(INSIDE / "run"),
        # A process that crashed has to be seen, not replaced.
        "restart_after_crash": False,
        "log_destination": "stderr",
        "logging_collector": False,
    }
    options = {**own, **bases.options(spec)}
    if loading:
        # Settling vacuums what was loaded, once.
        options |= {"autovacuum": False}
    words = [*programs.words(spec, spec.program), "-D", str(INSIDE / "data")]
    for name, value in options.items():
        shown = ("on" if value else "off") if isinstance(value, bool) else value
        words += ["-c", f"{name}={shown}"]
    return words


def rows(
    server: RunningServer, statement: str, *, timeout_s: float = session.STATEMENT_TIMEOUT_S
) -> list[tuple[str, ...]]:
    """Return what the server answers to one SQL statement, as text; NULL is the word NULL.

    Raises:
        ServerError: It refused the statement or did not answer; carries what it said.
    """
    words = [_client(), "--no-psqlrc", "--quiet", "--tuples-only", "--no-align"]
    words += ["--field-separator=\t", "--pset=null=NULL", "--set=ON_ERROR_STOP=1"]
    words += [f"--host={INSIDE / 'run'}", f"--port={PORT}", f"--username={USER}"]
    words += [f"--dbname={DATABASE}", f"--command={statement}"]
    return session.answered(server, words, statement, timeout_s=timeout_s)


def _client() -> str:
    """Return the newest psql: what Debian puts in the path is a script around it.

    Raises:
        HostError: There is none.
    """
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/psql"),
        key=lambda path: [int(number) for number in re.findall(r"\d+", path.parts[-3])],
    )
    if found:
        return str(found[-1])
    try:
        return shell.require("psql", package="postgresql-client")
    except HostError as error:
        raise HostError(f"{error}: PostgreSQL is spoken to through it") from error


def status(server: RunningServer) -> Mapping[str, int]:
    """Return every statistics counter that is a number, summed over tables and kinds of I/O.

    `pg_stat_database.xact_commit` is called `pg_database_xact_commit`, and so on.

    Raises:
        ServerError: As `rows`.
    """
    parts = [
        f"SELECT '{_prefix(view)}' || key, value "  # noqa: S608  names of ours
        f"FROM {view} AS v, json_each_text(row_to_json(v)) {where}"
        for view, where in _VIEWS.items()
        if view in _views(server)
    ]
    total: Counter[str] = Counter()
    for row in rows(server, " UNION ALL ".join(parts)):
        for name, value in session.numbers([row]).items():
            if not _NO_COUNTERS.fullmatch(name):
                total[name] += value
    return dict(total)


def _prefix(view: str) -> str:
    return view.replace("pg_stat_", "pg_").replace("pg_user_", "pg_") + "_"


@lru_cache(maxsize=8)
def _views(server: RunningServer) -> frozenset[str]:
    """Return which of the views this server has."""
    names = ", ".join(f"'{view}'" for view in _VIEWS)
    statement = f"SELECT relname FROM pg_class WHERE relname IN ({names})"  # noqa: S608  ours
    found = rows(server, statement)
    return frozenset(row[0] for row in found)


def settle(server: RunningServer, *, timeout_s: float) -> Settled:
    """Vacuum what was written, write a checkpoint, and wait until autovacuum is idle.

    Raises:
        ServerError: It refused a statement.
    """
    began = time.monotonic()
    if server.loading:
        rows(server, "VACUUM (FREEZE, ANALYZE)", timeout_s=VACUUM_TIMEOUT_S)
    elif _was_written(server):
        rows(server, "VACUUM (ANALYZE)", timeout_s=VACUUM_TIMEOUT_S)
    rows(server, "CHECKPOINT", timeout_s=VACUUM_TIMEOUT_S)
    return settled(began, wait(lambda: _left(server), until=began + timeout_s))


def _was_written(server: RunningServer) -> bool:
    """Whether a table has changed since it was vacuumed and analysed.

    An analysis draws new random rows, so one that nothing asks for would only add noise.
    """
    major = re.match(r"\d+", server.version)
    if major is None or int(major.group()) < _DELAYED_BEFORE:
        time.sleep(_STATISTICS_DELAY_S)
    found = rows(
        server,
        "SELECT count(*) FROM pg_stat_user_tables WHERE n_dead_tup > 0 OR n_mod_since_analyze > 0",
    )
    return found[0][0] != "0"


def _left(server: RunningServer) -> str:
    """Return the background work that is left, in words, or an empty text."""
    found = rows(
        server,
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'",
    )
    return "" if found[0][0] == "0" else f"{found[0][0]} autovacuum workers"


def sysbench_words(server: RunningServer, *, database: str) -> list[str]:  # noqa: ARG001  a schema
    """Return the words that make sysbench talk to this server; `database` is a schema in it."""
    return [
        "--db-driver=pgsql",
        f"--pgsql-host={INSIDE}/run",
        f"--pgsql-port={PORT}",
        f"--pgsql-user={USER}",
        f"--pgsql-db={DATABASE}",
    ]


#: The module as an engine.
_ITSELF: Final = cast("Engine", sys.modules[__name__])
