"""The verbs `forkwatch import ...` on a service's store: what is taken in, and what is refused."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from forkwatch.errors import DoorError
from forkwatch.import_verb import imports
from runner import shell
from service.store import commits, runs, series
from service.store.database import Database
from service.store.migrate import upgrade

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from click.testing import Result
    from sqlalchemy.orm import Session

HISTORY = """\
commit,time,value,note
8.0.28,2022-01-18,100.5,first
8.0.28,2022-01-18,101.5,again
8.0.30,1658793600,,not measured
8.0.36,2024-01-16T10:00:00+02:00,90.0,
"""


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without a row; making one takes longer than copying it."""
    path = tmp_path_factory.mktemp("fresh") / "service.sqlite"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture
def home(tmp_path: Path, fresh: Path) -> Path:
    """The home of a service that has seen nothing yet."""
    folder = tmp_path / "home"
    folder.mkdir()
    shutil.copy(fresh, folder / "service.sqlite")
    return folder


@pytest.fixture
def reader(home: Path) -> Iterator[Session]:
    database = Database(f"sqlite:///{home / 'service.sqlite'}")
    with database.reading() as session:
        yield session
    database.close()


def say(home: Path, *words: str, text: str | None = None) -> Result:
    return CliRunner().invoke(imports, [*words, "--home", str(home)], input=text)


def csv_file(folder: Path, text: str) -> str:
    path = folder / "history.csv"
    path.write_text(text)
    return str(path)


def starts_of(session: Session, workload: str = "scan") -> dict[str, tuple[tuple[float, ...], ...]]:
    """Return the starts by commit of the one series of a workload."""
    (key,) = series.of_fork(session, "history", workload=workload, metric="throughput_ops_s")
    return {point.subject: point.samples.starts for point in series.points(session, key.id)}


def test_a_csv_history_is_taken_in_and_the_rest_is_named(
    home: Path, tmp_path: Path, reader: Session
) -> None:
    file = csv_file(tmp_path, HISTORY)
    said = say(home, "csv", file, "--fork", "history", "--workload", "scan")

    assert said.exit_code == 0, said.output
    assert said.stdout == "imported 2 commits into fork history, host class imported-csv\n"
    assert "columns left out: note" in said.stderr
    assert starts_of(reader) == {"8.0.28": ((100.5,), (101.5,)), "8.0.36": ((90.0,),)}
    newest = commits.newest(reader, "history")[0]
    assert newest.committed_at.isoformat() == "2024-01-16T08:00:00+00:00"


def test_again_is_once(home: Path, tmp_path: Path) -> None:
    words = ("csv", csv_file(tmp_path, HISTORY), "--fork", "history", "--workload", "scan")
    say(home, *words)

    assert "imported 0 commits into fork history" in say(home, *words).stdout
    assert "2 were there already" in say(home, *words).stdout


def test_starts_and_workloads_have_columns(home: Path, reader: Session) -> None:
    text = (
        "Commit;Time;Workload;Start;Value\n"
        "v1;2024-01-01;scan;a;2,5\nv1;2024-01-01;scan;a;2,6\nv1;2024-01-01;scan;b;2,7\n"
        "v1;2024-01-01;random-points(10);a;900\n"
    )
    said = say(home, "csv", "-", "--fork", "history", "--host-class", "bee", text=text)

    assert said.exit_code == 0, said.output
    assert "host class imported-bee" in said.stdout
    assert starts_of(reader) == {"v1": ((2.5, 2.6), (2.7,))}
    assert starts_of(reader, "random-points(10)") == {"v1": ((900.0,), ())}


def test_times_become_rates(home: Path, reader: Session) -> None:
    text = "commit,time,value\nv1,2024-01-01,4\n"
    words = ("csv", "-", "--fork", "history", "--workload", "scan", "--metric", "ms_per_op")
    say(home, *words, text=text)

    assert starts_of(reader) == {"v1": ((250.0,),)}


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        (
            "commit,time,value\nv1,2024-01-01,1\nv2,2024-01-02,fast\n",
            (),
            "line 3: the value 'fast'",
        ),
        ("commit,time,value\nv1,2024-01-01,-1\n", (), "line 2: the value '-1'"),
        ("commit,time,value\nv1,2024-01-01,0\n", (), "line 2: the value '0'"),
        ("commit,time,value\nv1,2024-01-01,inf\n", (), "line 2: the value 'inf'"),
        ("commit,time,value\nv1,2024-01-01,1e300\n", (), "line 2: '1e300' is no throughput_ops_s"),
        ("commit,time,value\nv1,yesterday,1\n", (), "line 2: 'yesterday' is no time"),
        ("commit,time,value\nv1,99999999999999999999,1\n", (), "is no time"),
        ("commit,time,value\nv1,0001-01-01,1\n", (), "line 2: '0001-01-01' is no time"),
        ("commit,time,value\n,2024-01-01,1\n", (), "line 2: '' is no name of a commit"),
        ("commit,value\nv1,1\n", (), "no column 'time'; there are 'commit', 'value'"),
        ("v1,2024-01-01,1\n", (), "no column 'commit'"),
        ("commit,time,value,workload\nv1,2024-01-01,1,scan\n", (), "leave --workload out"),
        ("commit,time,value\nv1,2024-01-01,\n", (), "nothing to import"),
        ("", (), "the file is empty"),
        ("commit,time,value\nv1,2024-01-01,1\n", ("--branch", "a b"), "no name of a branch"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_imported(
    home: Path, reader: Session, text: str, words: tuple[str, ...], message: str
) -> None:
    said = say(home, "csv", "-", "--fork", "history", "--workload", "scan", *words, text=text)

    assert isinstance(said.exception, DoorError), said.output
    assert message in str(said.exception)
    assert series.of_fork(reader, "history") == []


def test_an_unknown_metric_and_a_missing_workload_are_misuse(home: Path, tmp_path: Path) -> None:
    file = csv_file(tmp_path, HISTORY)

    assert say(home, "csv", file, "--fork", "history", "--metric", "qps").exit_code == 2
    assert "say --workload" in str(say(home, "csv", file, "--fork", "history").exception)
    assert "cannot be read" in str(say(home, "csv", str(tmp_path), "--fork", "history").exception)


def test_without_a_service_there_is_nowhere_to_import_to(tmp_path: Path) -> None:
    said = say(tmp_path, "csv", csv_file(tmp_path, HISTORY), "--fork", "h", "--workload", "scan")

    assert "is --home the service's?" in str(said.exception)
    assert not (tmp_path / "service.sqlite").exists()


OUTPUT = """\
sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: {threads}

Threads started!

General statistics:
    total time:                          2.0000s
    total number of events:              {events}

Latency (ms):
         min:                                   15.01
         avg:                                   16.43
         max:                                   21.50
         95th percentile:                       17.32
         sum:                                 2004.32
"""


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Results of two starts of one version, beside what else lies in such folders."""
    folder = tmp_path / "8.0.28"
    folder.mkdir()
    for name, events in (("scan.txt", 4), ("scan.2.txt", 6), ("point-query.log", 100_000)):
        (folder / name).write_text(OUTPUT.format(threads=4, events=events))
    (folder / "vmstat").write_text("procs -----------memory----------\n")
    (folder / ".hidden").write_text("sysbench 1.0.20\n")
    return folder


def test_a_folder_of_sysbench_outputs_is_a_commit(
    home: Path, results: Path, reader: Session
) -> None:
    said = say(home, "sysbench", str(results), "--fork", "history", "--time", "2022-01-18")

    assert said.exit_code == 0, said.output
    assert "imported 1 commits into fork history, host class imported-sysbench" in said.stdout
    assert "files left out: vmstat" in said.stderr
    assert starts_of(reader) == {"8.0.28": ((2.0,), (3.0,))}
    assert starts_of(reader, "point-query") == {"8.0.28": ((50_000.0,), ())}
    (commit,) = commits.newest(reader, "history")
    (run,) = runs.of_commit(reader, "history", commit.sha)
    assert (run.config, runs.document(reader, run.id).threads) == ("threads-4", 4)
    assert commit.committed_at.isoformat() == "2022-01-18T00:00:00+00:00"


def test_a_copied_folder_is_there_already(home: Path, results: Path) -> None:
    say(home, "sysbench", str(results), "--fork", "history")
    copy = results.parent / "elsewhere" / "8.0.28"
    shutil.copytree(results, copy)
    for path in copy.iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))
    said = say(home, "sysbench", str(copy), "--fork", "history")

    assert "1 were there already" in said.stdout
    assert "time of the commit: 2023-11-14 22:13 UTC, that of the newest file" in said.stderr


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("insert", "sysbench 1.0.20\nFATAL: unable to connect\n", "insert: no summary of a run"),
        ("insert", OUTPUT.format(threads=4, events=0), "insert: the run did no operation"),
        ("insert", OUTPUT.format(threads=40, events=9), "have 4, 40 client threads"),
        ("scan", OUTPUT.format(threads=4, events=9), "start 1 has another file of the workload"),
    ],
)
def test_a_run_that_failed_is_named_and_nothing_is_imported(
    home: Path, results: Path, reader: Session, name: str, text: str, message: str
) -> None:
    (results / name).write_text(text)
    said = say(home, "sysbench", str(results), "--fork", "history")

    assert isinstance(said.exception, DoorError), said.output
    assert message in str(said.exception)
    assert series.of_fork(reader, "history") == []


def test_a_folder_without_results_says_so(home: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    empty = say(home, "sysbench", str(tmp_path / "empty"), "--fork", "history")
    absent = say(home, "sysbench", str(tmp_path / "absent"), "--fork", "history")
    assert "no output of sysbench" in str(empty.exception)
    assert "is no folder" in str(absent.exception)


def test_what_sysbench_itself_prints_is_taken_in(
    home: Path, tmp_path: Path, reader: Session
) -> None:
    done = shell.run(
        ["sysbench", "cpu", "--time=3", "--report-interval=1", "--histogram=on", "run"],
        timeout_s=60,
    )
    assert done.ok, done.stderr
    folder = tmp_path / "today"
    folder.mkdir()
    (folder / "cpu.txt").write_text(done.stdout)
    said = say(home, "sysbench", str(folder), "--fork", "history")

    assert said.exit_code == 0, said.output
    (commit,) = commits.newest(reader, "history")
    (run,) = runs.of_commit(reader, "history", commit.sha)
    (piece,) = runs.document(reader, run.id).starts[0].slices
    assert piece.latency_ms is not None
    assert piece.latency_ms.p50 <= piece.latency_ms.p99
    assert piece.throughput_ops_s == pytest.approx(piece.operations / 3, rel=0.05)
    assert len(piece.per_second_ops_s) in {2, 3}
