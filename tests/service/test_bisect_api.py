"""The API about bisects: read by whoever may, asked by tokens that may, problems for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bisects.document import CommitState
from service.core.errors import CodeHostError
from service.core.tokens import Scope
from service.store import bisect_jobs, bisects
from service.web.bisect_api import BODY_BYTES_MAX
from tests.fakes.alert_story import ALERT, a_longer_week
from tests.fakes.stored_bisects import BisectCaller

if TYPE_CHECKING:
    import httpx

    from service.store.database import Database

BRANCH = ("Import", "Quiet", "Slower speed=0.9", "After it speed=0.9")
WHERE = "/api/v1/bisects"


@pytest.fixture
def caller(database: Database) -> BisectCaller:
    caller = BisectCaller(database)
    for subject in BRANCH:
        caller.fork.push(subject)
    return caller


def question(caller: BisectCaller, **named: object) -> dict[str, object]:
    ends = {"good": caller.fork.commits[0].sha, "bad": "main"}
    return ends | {"workload": "scan"} | named


def problem(answer: httpx.Response) -> tuple[int, str]:
    """Return status and detail of an answer that has to be problem details."""
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == answer.status_code
    return answer.status_code, told["detail"]


def test_a_question_is_written_down_begun_and_told(caller: BisectCaller) -> None:
    answer = caller.post(WHERE, question(caller, stop=0.9, budget_minutes=30))
    told = answer.json()

    assert answer.status_code == 201, answer.text
    assert caller.flow.begun == [told["id"]]
    assert (told["state"], told["commits"], told["asked_by"], told["via"]) == (
        "waiting",
        4,
        "token:ada",
        "api",
    )
    asked = told["question"]
    assert (asked["good"], asked["bad"]) == (
        caller.fork.commits[0].sha,
        caller.fork.commits[-1].sha,
    )
    assert (asked["workload"], asked["suite"], asked["variant"], asked["host_class"]) == (
        "scan",
        "commit",
        "rel",
        "small",
    )
    assert (asked["stop"], asked["budget_minutes"]) == (0.9, 30.0)
    assert caller.get(f"{WHERE}/{told['id']}") == {"bisect": told, "document": None}


def test_the_same_question_is_one_whoever_asks(caller: BisectCaller) -> None:
    first = caller.post(WHERE, question(caller))
    second = caller.post(WHERE, question(caller))
    other = caller.post(WHERE, question(caller, workload="point-query"))

    assert (first.status_code, second.status_code, other.status_code) == (201, 200, 201)
    assert first.json() == second.json()
    assert first.json()["id"] != other.json()["id"]


def test_what_it_knows_is_told_whole(caller: BisectCaller) -> None:
    bisect = caller.ask()
    caller.observe(bisect, 3, [-0.1, -0.11])
    told = caller.get(f"{WHERE}/{bisect.id}")

    assert told["document"]["question"] == told["bisect"]["question"]
    assert [one["commit"] for one in told["document"]["observations"]] == [3]
    assert told["document"]["commits"][3]["starts"] == 2
    assert told["bisect"]["said"].startswith("bisecting scan: most probable is ")


def test_bisects_are_listed_by_fork_and_page_by_page(caller: BisectCaller) -> None:
    ids = [caller.ask(budget_minutes=float(10 + n)).id for n in range(3)][::-1]

    def listed(query: str) -> list[str]:
        return [bisect["id"] for bisect in caller.get(f"{WHERE}?{query}")]

    assert listed("fork=demo") == ids
    assert listed("limit=2") == ids[:2]
    assert listed(f"before={ids[1]}") == ids[2:]
    assert listed("before=none") == []
    assert listed("fork=other") == []
    assert listed("alert=none") == []
    for wrong in ("limit=0", "limit=201", "fork=%00", "before=%00", "alert=%00"):
        assert problem(caller.call("GET", f"{WHERE}?{wrong}"))[0] == 422


def test_a_bisect_is_ended_once_with_its_job(caller: BisectCaller) -> None:
    bisect = caller.ask()
    caller.observe(bisect, 3, [-0.1, -0.11])
    first = caller.post(f"{WHERE}/{bisect.id}/cancel")
    second = caller.post(f"{WHERE}/{bisect.id}/cancel")

    assert first.status_code == 200, first.text
    assert (first.json()["state"], first.json()) == ("cancelled", second.json())
    assert first.json()["said"].startswith("ended by token:ada: no answer, it was cancelled after")
    # The one measurement has ended; there is no other to be stopped.
    assert caller.flow.ended[0] == (bisect.id, ())
    assert caller.get(f"{WHERE}/{bisect.id}")["document"]["end"] == "cancelled"
    assert problem(caller.post(f"{WHERE}/bisect-none/cancel"))[0] == 404


def test_only_a_token_that_may_act_acts(caller: BisectCaller) -> None:
    reader = caller.tokens.create("reader", [Scope.READ, Scope.SUBMIT])[1]
    bisect = caller.ask()

    for path in (WHERE, f"{WHERE}/{bisect.id}/cancel"):
        assert problem(caller.call("POST", path, json=question(caller)))[0] == 401
        status, detail = problem(caller.call("POST", path, token=reader, json=question(caller)))
        assert (status, "scope 'act'" in detail) == (403, True)
    # Who it is comes first: a stranger's body is not even read.
    assert problem(caller.call("POST", WHERE, content=b"x" * 10**6))[0] == 401
    assert caller.flow.ended == []


def test_reading_needs_a_token_where_it_is_not_public(database: Database) -> None:
    caller = BisectCaller(database, public_read=False)
    reader = caller.tokens.create("reader", [Scope.READ])[1]

    for path in (WHERE, "/bisects"):
        assert caller.call("GET", path).status_code == 401
        assert caller.call("GET", path, token=reader).status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"{}", 422, "give good and bad, or an alert"),
        (b"no json", 422, "Invalid JSON"),
        (b'{"good": "main"}', 422, "give good and bad"),
        (b'{"alert": "a", "good": "main"}', 422, "give nothing beside it"),
        (b'{"good": "main", "bad": "main", "surprise": 1}', 422, "surprise: Extra inputs"),
        (b'{"good": "ma in", "bad": "main"}', 422, "good: String should match"),
        (b'{"good": "\\u0000", "bad": "main"}', 422, "good: String should match"),
        (b'{"good": "main", "bad": "main", "stop": 1}', 422, "stop: Input should be less"),
        (b'{"good": "main", "bad": "main", "budget_minutes": 0}', 422, "budget_minutes"),
        (b'{"good": "main", "bad": "main", "budget_minutes": 1e9}', 422, "budget_minutes"),
        (b'{"good": "main", "bad": "main", "workload": "scan"}', 409, "the same commit"),
        (b'{"good": "nowhere", "bad": "main"}', 409, "the good end names no commit here"),
        (b'{"alert": "alert-none"}', 404, "there is no alert"),
        (b" " * (BODY_BYTES_MAX + 1), 413, f"{BODY_BYTES_MAX} bytes"),
    ],
)
def test_what_is_no_question_is_refused_with_its_faults(
    caller: BisectCaller, body: bytes, status: int, told: str
) -> None:
    found, detail = problem(caller.call("POST", WHERE, token=caller.acting, content=body))

    assert (found, told in detail) == (status, True), detail
    assert caller.flow.begun == []


def test_a_repository_that_is_away_is_said_so(caller: BisectCaller) -> None:
    caller.fork.broken = True

    assert problem(caller.post(WHERE, question(caller)))[0] == 503
    with pytest.raises(CodeHostError):
        caller.ask()


def test_an_alert_about_commits_that_are_gone_is_refused(caller: BisectCaller) -> None:
    with caller.database.writing() as session:
        a_longer_week(session)
    answer = caller.post(WHERE, {"alert": ALERT})

    # The commits of the stored week are none of this repository's.
    status, detail = problem(answer)
    assert (status, "names no commit here" in detail) == (409, True)


def test_nothing_begins_by_itself_unless_the_settings_say_so(caller: BisectCaller) -> None:
    with caller.database.writing() as session:
        a_longer_week(session)
    caller.asks.alerted(ALERT)

    assert caller.flow.begun == []
    assert caller.get(WHERE) == []


def test_material_and_observations_come_back_as_they_were_stored(caller: BisectCaller) -> None:
    bisect = caller.ask()
    caller.observe(bisect, 3, [-0.1, -0.11])
    caller.observe(bisect, 2, state=CommitState.BROKEN, failure="no such file\x00 or folder")
    with caller.database.reading() as session:
        material = bisects.material(session, bisect.id)
        jobs = bisect_jobs.of_bisect(session, bisect.id)
        document = bisects.document(session, bisect.id)

    expected = caller.fork.commits_between(
        bisect.question.good, bisect.question.bad, limit=len(BRANCH)
    )
    assert list(material.commits) == expected
    assert (material.engine, material.trusted, material.known) == ("mariadb", False, ())
    assert [job.observation.log_ratios for job in jobs if job.observation] == [(-0.1, -0.11), ()]
    assert document is not None
    assert document.observations == tuple(job.observation for job in jobs)
