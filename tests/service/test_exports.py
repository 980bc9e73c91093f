"""Exports: every sample once, as CSV and Parquet, bounded over HTTP."""

from __future__ import annotations

import asyncio
import csv
import io
from datetime import UTC, timedelta
from typing import TYPE_CHECKING

import httpx
import pytest
from pyarrow import parquet
from sqlalchemy import func, select, update

from results.metric import METRICS
from service.core.errors import NotFoundError
from service.flows.exports import ExportFormat, ExportTooLargeError, export_of
from service.store.exports import SampleChoice, SampleLine
from service.store.tables import RunRow, SampleRow
from service.web.application import web_application
from service.web.export_api import exports_router
from service.web.pages import missing_page
from tests.fakes.run_documents import AT, sha
from tests.fakes.stored_fork import a_fork, a_pair, a_stored_run, git_commit, measured

if TYPE_CHECKING:
    from service.store.database import Database

A, B = sha("a"), sha("b")
FORMULA = "=HYPERLINK(1)"


@pytest.fixture
def known(database: Database) -> Database:
    """A commit alone; another alone a day later, and in a pair with the first."""
    with database.writing() as session:
        a_fork(session, git_commit(A, subject="Import"), git_commit(B, parent=A, subject=FORMULA))
        a_fork(session, git_commit(A), name="other")
        a_stored_run(session, measured("run-a", A, scan=2.0, point=6e4))
        a_stored_run(session, measured("run-b", B, scan=1.9, point=6e4))
        a_stored_run(session, a_pair("run-bc", B, A))
        a_stored_run(session, measured("run-o", A, scan=2.0, point=6e4, fork="other"))
        late = update(RunRow).where(RunRow.id.in_(["run-b", "run-bc"]))
        session.execute(late.values(stored_at=AT + timedelta(days=1)))
    return database


def written(database: Database, form: ExportFormat, choice: SampleChoice) -> bytes:
    return b"".join(export_of(database, choice, runs_max=100).pieces(form))


def rows_of(database: Database, choice: SampleChoice) -> list[dict[str, str]]:
    text = written(database, ExportFormat.CSV, choice).decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_every_sample_of_a_fork_comes_once(known: Database) -> None:
    rows = rows_of(known, SampleChoice(fork="demo"))

    with known.reading() as session:
        runs = select(RunRow.id).where(RunRow.fork == "demo")
        query = select(func.count(), func.sum(SampleRow.value)).where(SampleRow.run.in_(runs))
        count, total = session.execute(query).one()
    assert len(rows) == count
    assert sum(float(row["value"]) for row in rows) == pytest.approx(total)
    assert {row["run"] for row in rows} == {"run-a", "run-b", "run-bc"}
    assert {row["metric"] for row in rows} == set(METRICS) - {"instructions_per_op"}
    assert len({tuple(row.values()) for row in rows}) == count


def test_each_side_of_a_pair_has_its_own_commit(known: Database) -> None:
    rows = [row for row in rows_of(known, SampleChoice(fork="demo")) if row["run"] == "run-bc"]

    assert {(row["side"], row["commit"], row["kind"]) for row in rows} == {
        ("baseline", A, "confirm"),
        ("candidate", B, "confirm"),
    }


def test_a_row_says_all_that_its_sample_is(known: Database) -> None:
    choice = SampleChoice(fork="demo", workloads=("scan",), metric="throughput_ops_s")
    first = rows_of(known, choice)[0]

    assert first == {
        "fork": "demo",
        "branch": "main",
        "commit": A,
        "committed_at": AT.isoformat(),
        "subject": "Import",
        "run": "run-a",
        "kind": "single",
        "side": "candidate",
        "measured_at": AT.isoformat(),
        "stored_at": AT.isoformat(),
        "host_class": "small",
        "host": "bench-1",
        "build": "rel",
        "config": "default",
        "dataset": "small:dddddddddddd",
        "placement": "shared-core",
        "workload": "scan",
        "metric": "throughput_ops_s",
        "unit": "ops/s",
        "start": "0",
        "sequence": "0",
        "value": "2.0",
    }


@pytest.mark.parametrize(
    ("chosen", "runs"),
    [
        ({"workloads": ("scan",)}, {"run-a", "run-b", "run-bc"}),
        ({"workloads": ("insert",)}, set()),
        ({"metric": "latency_ms_p99"}, {"run-a", "run-b", "run-bc"}),
        ({"since": AT + timedelta(hours=1)}, {"run-b", "run-bc"}),
        ({"branch": "10.11"}, set()),
        ({"host_class": "small", "since": AT}, {"run-a", "run-b", "run-bc"}),
    ],
)
def test_a_choice_is_kept(known: Database, chosen: dict[str, object], runs: set[str]) -> None:
    rows = rows_of(known, SampleChoice(fork="demo", **chosen))

    assert {row["run"] for row in rows} == runs
    if "workloads" in chosen:
        assert {row["workload"] for row in rows} <= {"scan"}
    if "metric" in chosen:
        assert {row["metric"] for row in rows} == {"latency_ms_p99"}


@pytest.mark.parametrize("begins", ["=", "+", "-", "@", "\t", "\r"])
def test_a_spreadsheet_runs_no_subject(database: Database, begins: str) -> None:
    subject = f"{begins}cmd|'/c calc'!A1"
    with database.writing() as session:
        a_fork(session, git_commit(A, subject=subject))
        a_stored_run(session, measured("run-a", A, scan=2.0, point=6e4))
    rows = rows_of(database, SampleChoice(fork="demo"))

    assert {row["subject"] for row in rows} == {f"'{subject}"}


def test_parquet_has_the_same_rows_as_they_are(known: Database) -> None:
    data = written(known, ExportFormat.PARQUET, SampleChoice(fork="demo"))
    table = parquet.read_table(io.BytesIO(data))
    rows = table.to_pylist()

    assert table.column_names == list(SampleLine._fields)
    assert len(rows) == len(rows_of(known, SampleChoice(fork="demo")))
    assert {row["subject"] for row in rows} == {"Import", FORMULA}
    assert rows[0]["committed_at"] == AT
    assert rows[0]["committed_at"].tzinfo is not None
    plain = rows_of(known, SampleChoice(fork="demo"))
    assert [row["value"] for row in rows] == [float(row["value"]) for row in plain]


def test_a_file_without_samples_has_its_columns(known: Database) -> None:
    choice = SampleChoice(fork="demo", workloads=("insert",))
    table = parquet.read_table(io.BytesIO(written(known, ExportFormat.PARQUET, choice)))

    assert (table.num_rows, table.column_names) == (0, list(SampleLine._fields))
    assert (
        written(known, ExportFormat.CSV, choice) == (",".join(SampleLine._fields) + "\r\n").encode()
    )


def test_pieces_are_of_a_few_runs(database: Database) -> None:
    """Memory does not grow with the history."""
    shas = [f"{number:040x}" for number in range(12)]
    with database.writing() as session:
        a_fork(session, *(git_commit(one) for one in shas))
        for one in shas:
            a_stored_run(session, measured(f"run-{one}", one, scan=2.0, point=6e4))
    found = export_of(database, SampleChoice(fork="demo"), runs_max=100)

    assert len(list(found.pieces(ExportFormat.CSV))) == 1 + 3
    data = b"".join(found.pieces(ExportFormat.PARQUET))
    assert parquet.ParquetFile(io.BytesIO(data)).num_row_groups == 3


def test_a_fork_that_is_not_there_and_too_many_runs_are_told_before_it_begins(
    known: Database,
) -> None:
    with pytest.raises(NotFoundError, match="no fork 'nobody'"):
        export_of(known, SampleChoice(fork="nobody"), runs_max=9)
    with pytest.raises(ExportTooLargeError, match="more than 2 runs"):
        export_of(known, SampleChoice(fork="demo"), runs_max=2)


def ask(database: Database, path: str, *, runs_max: int = 100) -> httpx.Response:
    router = exports_router(database, runs_max=runs_max)
    app = web_application([router], missing_page=missing_page)

    async def get() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get(path)

    return asyncio.run(get())


def test_over_http_it_is_a_file(known: Database) -> None:
    since = (AT.astimezone(UTC) + timedelta(hours=1)).isoformat().replace("+00:00", "Z")
    path = f"/api/v1/export/samples?fork=demo&workload=scan&workload=insert&since={since}"
    plain, packed = ask(known, path), ask(known, f"{path}&format=parquet")

    assert plain.headers["content-type"] == "text/csv; charset=utf-8"
    assert plain.headers["content-disposition"] == 'attachment; filename="demo.csv"'
    rows = list(csv.DictReader(io.StringIO(plain.text, newline="")))
    assert {row["workload"] for row in rows} == {"scan"}
    assert {row["run"] for row in rows} == {"run-b", "run-bc"}
    assert packed.headers["content-type"] == "application/vnd.apache.parquet"
    assert parquet.read_table(io.BytesIO(packed.content)).num_rows == len(rows)


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ("fork=nobody", 404, "there is no fork 'nobody'"),
        ("", 422, "fork"),
        ("fork=demo", 422, "more than 2 runs"),
        ("fork=demo&format=xlsx", 422, "format"),
        ("fork=demo&since=2026-11-01", 422, "since"),
        ("fork=de%00mo", 422, "fork"),
        ("fork=demo&workload=%00", 422, "workload"),
        ("fork=demo&metric=" + "x" * 201, 422, "metric"),
    ],
)
def test_what_cannot_be_is_a_problem_in_words(
    known: Database, query: str, status: int, said: str
) -> None:
    answer = ask(known, f"/api/v1/export/samples?{query}", runs_max=2)

    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert said in answer.json()["detail"]


def test_a_name_cannot_end_the_header(database: Database) -> None:
    name = 'a"; x="b/../é'
    with database.writing() as session:
        a_fork(session, name=name)
    answer = ask(database, f"/api/v1/export/samples?fork={name.replace('/', '%2F')}")

    assert answer.headers["content-disposition"] == 'attachment; filename="a-x-b-..-.csv"'
