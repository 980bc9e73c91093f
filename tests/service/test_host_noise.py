"""What run documents tell about their machine, on both databases and over HTTP."""

from __future__ import annotations

import asyncio
import math
import threading
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pytest

from results.document import CanaryReading, Outcome, RunDocument
from results.slice import SideName, SliceState
from service.core.hosts import UNKNOWN, Spread
from service.core.model import Job, JobKind, JobState
from service.flows import host_noise
from service.flows.host_noise import noise_of, pooled
from service.flows.intake import take_run
from service.store import hosts, jobs, runs
from service.web.application import web_application
from service.web.host_api import hosts_router
from service.web.pages import missing_page
from tests.fakes.run_documents import AT, a_run, sha
from tests.fakes.stored_fork import a_fork, git_commit, measured

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from service.store.database import Database

A, B = sha("a"), sha("b")


def a_noisy_pair(
    ratio: float = 1.0, *, run: str = "run-1", on: str = A, against: str = B
) -> RunDocument:
    """A pair of three starts whose scatter is known, and a candidate at that ratio."""
    shared = [0.02, -0.01, -0.01]
    own = [0.001, -0.002, 0.001]
    before = [[2.0 * math.exp(x), 2.0 * math.exp(x + 0.004)] for x in shared]
    after = [
        [2.0 * ratio * math.exp(x + y), 2.0 * ratio * math.exp(x + y + 0.004)]
        for x, y in zip(shared, own, strict=True)
    ]
    story = a_run().called(run).on(on).against(against)
    story = story.with_samples("scan", before, side=SideName.BASELINE)
    return story.with_samples("scan", after).build()


def with_host(document: RunDocument, **facts: Any) -> RunDocument:
    return document.model_copy(update={"host": document.host.model_copy(update=facts)})


def a_reading(moment: str, value: float, **chosen: Any) -> CanaryReading:
    return CanaryReading(moment=moment, name="cpu", unit="events/s", value=value, **chosen)


def keep_job(session: Session, document: RunDocument) -> Job:
    """Write down the job of a document."""
    job = Job(
        id=document.job,
        fork=document.fork,
        sha=document.candidate.commit.sha,
        kind=JobKind.CONFIRM if document.paired else JobKind.SINGLE,
        state=JobState.DISPATCHED,
        host_class=document.host.host_class,
        run=document.id,
        baseline_sha=document.baseline.commit.sha if document.baseline else None,
        order="{}",
        attempts=1,
        created_at=AT,
        finished_at=None,
    )
    return jobs.create_once(session, job)


def keep(session: Session, document: RunDocument, *, at: Any = AT) -> None:
    """Store a run with what it tells about its host."""
    job = keep_job(session, document)
    runs.store_once(session, document, job, at=at)
    host_noise.record(session, document, at=at)


@pytest.fixture
def forked(database: Database) -> Database:
    with database.writing() as session:
        a_fork(session, git_commit(A), git_commit(B, parent=A))
    return database


def test_levels_of_noise_are_told_apart() -> None:
    [noise] = noise_of(a_noisy_pair())

    shared, own = np.array([0.02, -0.01, -0.01]), np.array([0.001, -0.002, 0.001])
    sides = [np.var(shared, ddof=1), np.var(shared + own, ddof=1)]
    assert noise.between_starts == Spread(sd=pytest.approx(math.sqrt(np.mean(sides))), df=4)
    # Two slices that differ by .004 have a sd of .004 / sqrt(2).
    assert noise.between_slices == Spread(sd=pytest.approx(0.004 / math.sqrt(2)), df=6)
    assert noise.between_pairs == Spread(sd=pytest.approx(np.std(own, ddof=1)), df=2)
    assert (noise.starts, noise.slices, noise.disturbed) == (3, 12, 0)


def test_a_slow_commit_is_no_noise() -> None:
    calm, slow = noise_of(a_noisy_pair(1.0)), noise_of(a_noisy_pair(0.5))

    for name in ("between_starts", "between_slices", "between_pairs"):
        one, other = getattr(calm[0], name), getattr(slow[0], name)
        assert (other.sd, other.df) == (pytest.approx(one.sd, rel=1e-9), one.df)


def test_a_disturbed_slice_counts_and_scatters_nothing() -> None:
    document = a_noisy_pair()
    first = document.starts[0]
    spoilt = first.slices[0].model_copy(
        update={"state": SliceState.DISTURBED, "throughput_ops_s": 0.1}
    )
    busy = first.slices[1].counters.model_copy(update={"machine_steal_percent": 7.5})
    other = first.slices[1].model_copy(update={"counters": busy})
    start = first.model_copy(update={"slices": (spoilt, other, *first.slices[2:])})
    changed = document.model_copy(update={"starts": (start, *document.starts[1:])})

    [noise] = noise_of(changed)

    assert (noise.slices, noise.disturbed, noise.steal_percent_max) == (12, 1, 7.5)
    assert noise.between_starts.sd < 0.03
    assert noise.between_slices.df == 5


def test_one_start_has_no_spread() -> None:
    [noise] = noise_of(a_run().with_samples("scan", [[2.0]]).build())

    assert noise.between_starts == noise.between_slices == noise.between_pairs
    assert not noise.between_starts.known


def test_pooling_counts_degrees_of_freedom() -> None:
    together = pooled([Spread(sd=0.01, df=1), UNKNOWN, Spread(sd=0.03, df=3)])

    assert together == Spread(sd=pytest.approx(math.sqrt((0.0001 + 3 * 0.0009) / 4)), df=4)
    assert pooled([UNKNOWN]) is UNKNOWN


def test_a_host_is_kept_with_its_noise_and_canary(forked: Database) -> None:
    readings = (a_reading("before", 4400.0), a_reading("after", 4000.0, change_percent=-9.1))
    document = with_host(a_noisy_pair(), fingerprint="f1", canary=readings)
    with forked.writing() as session:
        keep(session, document)
        # A step that is done again.
        host_noise.record(session, document, at=AT)

    with forked.reading() as session:
        [host] = hosts.everything(session)
        [found] = host_noise.of_host(session, "bench-1", host_class=None, workload=None, limit=100)
    assert (host.host_class, host.name, host.cpu_model) == ("small", "bench-1", "Xeon 2.3 GHz")
    assert host.runs == {Outcome.MEASURED: 1}
    assert found.host == host
    [record] = found.history
    assert (record.run, record.at, record.noise) == ("run-1", AT, noise_of(document)[0])
    assert [(one.moment, one.value, one.change_percent) for one in found.canary] == [
        ("before", 4400.0, None),
        ("after", 4000.0, -9.1),
    ]
    [usual] = found.usual
    assert usual.between_pairs_percent == pytest.approx(100 * record.noise.between_pairs.sd)


def test_a_changed_host_begins_a_new_past_and_keeps_the_old_one(forked: Database) -> None:
    later = AT + timedelta(days=1)
    calm = measured("run-2", A, scan=2.0, point=60000.0).build()
    with forked.writing() as session:
        keep(session, with_host(a_noisy_pair(), fingerprint="f1"))
        keep(session, with_host(calm, fingerprint="f2", kernel="6.2.0"), at=later)

    with forked.reading() as session:
        [found] = host_noise.of_host(session, "bench-1", host_class=None, workload=None, limit=100)
        scans = hosts.noise(session, found.host, workload="scan")
        newest = hosts.noise(session, found.host, limit=1)
    host = found.host
    assert (host.fingerprint, host.fingerprint_since, host.kernel) == ("f2", later, "6.2.0")
    assert (host.first_seen_at, host.last_seen_at) == (AT, later)
    assert [one.run for one in found.history] == ["run-1", "run-2", "run-2"]
    assert {one.workload: one.runs for one in found.usual} == {"scan": 1, "point-query": 1}
    assert [one.run for one in scans] == ["run-1", "run-2"]
    assert [one.run for one in newest] == ["run-2"]


def test_one_name_in_two_classes_is_two_hosts(forked: Database) -> None:
    with forked.writing() as session:
        keep(session, a_noisy_pair())
        other = a_noisy_pair(run="run-2", on=B, against=A)
        keep(session, with_host(other, host_class="large"))

    with forked.reading() as session:
        both = hosts.named(session, "bench-1")
        one = hosts.named(session, "bench-1", host_class="large")
        assert hosts.named(session, "bench-2") == []
    assert [host.host_class for host in both] == ["large", "small"]
    assert [host.runs for host in both] == [{Outcome.MEASURED: 1}] * 2
    assert one == both[:1]


def test_a_document_that_exaggerates_is_kept_all_the_same(forked: Database) -> None:
    """What came from a machine that ran a stranger's code must not stop the store."""
    odd = with_host(
        a_noisy_pair(),
        memory_bytes=10**30,
        logical_cpus=10**12,
        cpu_model="zero\0byte",
        canary=(a_reading("be\0fore", 1e300),),
    )
    with forked.writing() as session:
        keep(session, odd)

    with forked.reading() as session:
        [host] = hosts.everything(session)
        [reading] = hosts.canary(session, host)
    assert (host.cpu_model, host.logical_cpus) == ("zerobyte", 2**31 - 1)
    assert host.memory_bytes == 2**63 - 1
    assert (reading.moment, reading.value) == ("before", 1e300)


def test_runs_of_a_new_machine_that_come_at_once_are_all_kept(forked: Database) -> None:
    together = threading.Barrier(3)
    failed: list[Exception] = []

    def bring(number: int) -> None:
        document = measured(f"run-{number}", A, scan=2.0, point=60000.0).build()
        together.wait()
        try:
            with forked.writing() as session:
                hosts.see(session, document, at=AT)
        except Exception as error:  # noqa: BLE001  whatever it is, the test tells it
            failed.append(error)

    threads = [threading.Thread(target=bring, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failed == []
    with forked.reading() as session:
        assert [host.name for host in hosts.everything(session)] == ["bench-1"]


def call(database: Database, path: str) -> httpx.Response:
    app = web_application([hosts_router(database)], missing_page=missing_page)

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get(path)

    return asyncio.run(send())


def test_hosts_and_their_noise_can_be_asked_for(forked: Database) -> None:
    lonely = replace(a_run().called("run-2").on(B), samples=()).with_samples("scan", [[2.0]])
    with forked.writing() as session:
        keep(session, with_host(a_noisy_pair(), canary=(a_reading("before", 4400.0),)))
        keep(session, lonely.build())

    [host] = call(forked, "/api/v1/hosts").json()
    [noise] = call(forked, "/api/v1/hosts/bench-1/noise?host_class=small&workload=scan").json()

    assert (host["name"], host["runs"]) == ("bench-1", {"measured": 2})
    assert noise["host"] == host
    assert [one["run"] for one in noise["history"]] == ["run-1", "run-2"]
    # JSON has no NaN: what was not replicated is null.
    assert noise["history"][1]["noise"]["between_starts"] == {"sd": None, "df": 0}
    assert noise["usual"][0]["between_pairs_percent"] == pytest.approx(0.1732, abs=1e-4)
    assert noise["canary"][0]["value"] == 4400.0


def test_an_unknown_host_or_a_wrong_limit_is_a_problem(forked: Database) -> None:
    for path, status in (
        ("/api/v1/hosts/nobody/noise", 404),
        ("/api/v1/hosts/nobody/noise?limit=0", 422),
    ):
        answer = call(forked, path)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
    assert call(forked, "/api/v1/hosts").json() == []


def test_intake_tells_about_the_host_once(forked: Database) -> None:
    document = a_noisy_pair()
    with forked.writing() as session:
        keep_job(session, document)
    for _ in range(2):
        with forked.writing() as session:
            job = jobs.find(session, document.job)
            assert job is not None
            take_run(session, document, job, at=AT)

    with forked.reading() as session:
        [host] = hosts.everything(session)
        assert [one.noise for one in hosts.noise(session, host)] == noise_of(document)
