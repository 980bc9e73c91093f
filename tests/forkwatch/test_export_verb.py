"""The verb `forkwatch export` on a service's store: whole files, or none."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import pytest
import typer
from pyarrow import parquet
from typer.testing import CliRunner

from forkwatch.errors import DoorError
from forkwatch.export_verb import export
from service.store.database import Database
from service.store.migrate import upgrade
from tests.fakes.run_documents import sha
from tests.fakes.stored_fork import a_fork, a_stored_run, git_commit, measured

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

APP = typer.Typer()
APP.command()(export)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home of a service with one run of a fork."""
    folder = tmp_path / "home"
    folder.mkdir()
    url = f"sqlite:///{folder / 'service.sqlite'}"
    upgrade(url)
    database = Database(url)
    with database.writing() as session:
        a_fork(session, git_commit(sha("a")))
        a_stored_run(session, measured("run-a", sha("a"), scan=2.0, point=6e4))
    database.close()
    return folder


def say(home: Path, *words: str) -> Result:
    return CliRunner().invoke(APP, ["--home", str(home), *words])


def test_a_csv_file_appears_whole(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "demo.csv"
    out.write_text("old")
    said = say(home, "--fork", "demo", "--out", str(out), "--workload", "scan")

    assert said.exit_code == 0, said.output
    assert "wrote the samples of 1 runs of demo to" in said.stderr
    rows = list(csv.DictReader(io.StringIO(out.read_bytes().decode(), newline="")))
    assert {row["workload"] for row in rows} == {"scan"}
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["demo.csv"]


def test_a_parquet_file_is_one(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "demo.parquet"
    say(home, "--fork", "demo", "--out", str(out), "--format", "parquet", "--since", "2026-11-01")

    table = parquet.read_table(out)
    assert set(table["workload"].to_pylist()) == {"point-query", "scan"}


def test_standard_output_is_a_file_too(home: Path) -> None:
    said = say(home, "--fork", "demo", "--out", "-", "--metric", "latency_ms_p99")

    assert said.stdout.splitlines()[1].startswith("demo,main,aaaaaaaa")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--fork", "nobody"), "there is no fork 'nobody'"),
        (("--fork", "demo", "--out", "nowhere/demo.csv"), "there is no folder nowhere"),
    ],
)
def test_what_cannot_be_is_one_line(
    home: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    out = () if "--out" in words else ("--out", str(tmp_path / "demo.csv"))
    said = say(home, *words, *out)

    assert isinstance(said.exception, DoorError), said.output
    assert message in str(said.exception)
    assert [path for path in tmp_path.iterdir() if path.is_file()] == []


@pytest.mark.parametrize("words", [("--format", "xlsx"), ("--since", "yesterday")])
def test_what_makes_no_sense_is_misuse(home: Path, tmp_path: Path, words: tuple[str, str]) -> None:
    said = say(home, "--fork", "demo", "--out", str(tmp_path / "demo.csv"), *words)

    assert said.exit_code == 2
    assert not (tmp_path / "demo.csv").exists()


def test_without_a_service_nothing_is_made(tmp_path: Path) -> None:
    said = say(tmp_path, "--fork", "demo", "--out", str(tmp_path / "demo.csv"))

    assert "is --home the service's?" in str(said.exception)
    assert list(tmp_path.iterdir()) == []
