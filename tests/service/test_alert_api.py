"""The API about alerts: read by whoever may, changed by tokens that may, problems for the rest."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from results.metric import THROUGHPUT
from service.core.tokens import Scope
from service.flows.alert_actions import StoredAlertActions
from service.flows.baseline_orders import StoredBaselines
from service.flows.tokens import Tokens
from service.store import alerts, series
from service.web.alert_api import ORDER_BYTES_MAX, alerts_router, baselines_router
from service.web.api import commits_router
from service.web.application import web_application
from service.web.credentials import Guard
from service.web.pages import missing_page, pages_router
from tests.fakes.alert_story import ALERT, SLOW, B, a_longer_week, a_paired_run, an_alert_about
from tests.fakes.memory_fork import StillClock
from tests.fakes.stored_fork import SHAS, SLOWER

if TYPE_CHECKING:
    from service.store.database import Database

ACTIONS = f"/api/v1/alerts/{ALERT}/actions"


@dataclass
class Caller:
    """Somebody who calls the API of a service over a database."""

    database: Database
    public_read: bool = True
    clock: StillClock = field(default_factory=StillClock)
    settled: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tokens = Tokens(database=self.database, clock=self.clock)
        guard = Guard(tokens=self.tokens, public_read=self.public_read)
        actions = StoredAlertActions(self.database, self.clock, settled=self.settled.append)
        baselines = StoredBaselines(database=self.database, clock=self.clock)
        routers = [
            alerts_router(self.database, actions=actions, guard=guard),
            baselines_router(baselines, guard=guard),
        ]
        self.app = web_application(routers, missing_page=missing_page)

    def call(
        self, method: str, path: str, *, token: str | None = None, **named: Any
    ) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.request(method, path, headers=headers, **named)

        return asyncio.run(send())

    def get(self, path: str, **named: Any) -> Any:
        answer = self.call("GET", path, **named)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def secret(self, name: str, *scopes: Scope) -> str:
        return self.tokens.create(name, scopes)[1]


def problem(answer: httpx.Response) -> tuple[int, str]:
    """Return status and detail of an answer that has to be problem details."""
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == answer.status_code
    return answer.status_code, told["detail"]


@pytest.fixture
def caller(database: Database) -> Caller:
    with database.writing() as session:
        a_longer_week(session)
    return Caller(database)


def test_an_alert_tells_what_was_done_and_what_may_be_done(caller: Caller) -> None:
    secret = caller.secret("ada", Scope.ACT)
    done = caller.call("POST", ACTIONS, token=secret, json={"action": "acknowledge"})
    assert done.status_code == 200, done.text
    assert (done.json()["state"], done.json()["owner"]) == ("acknowledged", "token:ada")

    told = caller.get(f"/api/v1/alerts/{ALERT}")
    assert told["alert"] == done.json()
    assert [(one["sha"], one["part"], one["run"]) for one in told["commits"]] == [
        (SLOW, "opened", "run-5c")
    ]
    [entry] = told["history"]
    assert (entry["what"], entry["actor"], entry["via"]) == ("acknowledge", "token:ada", "api")
    assert "accept" in told["possible"]
    assert "reopen" not in told["possible"]


def test_an_order_with_a_key_is_done_once_and_others_are_told_no(caller: Caller) -> None:
    secret = caller.secret("ada", Scope.ACT)
    body = {"action": "accept", "note": "worth it", "key": "release-7"}
    first, second = (caller.call("POST", ACTIONS, token=secret, json=body) for _ in range(2))

    assert (first.status_code, first.json()) == (200, second.json())
    assert len(caller.get(f"/api/v1/alerts/{ALERT}")["history"]) == 1
    assert len(set(caller.settled)) == 1
    status, detail = problem(caller.call("POST", ACTIONS, token=secret, json={"action": "mute"}))
    assert (status, "possible now: true-alarm, note, reopen" in detail) == (409, True)


def test_only_a_token_that_may_act_acts(caller: Caller) -> None:
    reader = caller.secret("reader", Scope.READ, Scope.SUBMIT)
    gone = caller.secret("gone", Scope.ACT)
    caller.tokens.revoke("gone")
    body = {"action": "accept"}

    assert problem(caller.call("POST", ACTIONS, json=body))[0] == 401
    assert problem(caller.call("POST", ACTIONS, json=body, token="guess"))[0] == 401
    assert problem(caller.call("POST", ACTIONS, json=body, token=gone))[0] == 401
    status, detail = problem(caller.call("POST", ACTIONS, json=body, token=reader))
    assert (status, "scope 'act'" in detail) == (403, True)
    # Who it is comes first: a stranger's body is not even read.
    assert problem(caller.call("POST", ACTIONS, content=b"x" * 10**6))[0] == 401
    assert caller.get(f"/api/v1/alerts/{ALERT}")["history"] == []


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"{}", 422, "action: Field required"),
        (b"no json", 422, "body: Invalid JSON"),
        (b'{"action": "explode"}', 422, "action: Input should be"),
        (b'{"action": "note", "surprise": 1}', 422, "surprise: Extra inputs"),
        (b'{"action": "note"}', 409, "a note without words"),
        (b'{"action": "mute", "until": "2026-11-04T00:00:00"}', 422, "until"),
        (b'{"action": "mute", "until": "2025-11-04T00:00:00Z"}', 409, "at most 90 days"),
        (b'{"action": "assign", "due_on": "soon"}', 422, "due_on"),
        (b'{"action": "note", "note": "\\ud800"}', 422, ""),
        (b'{"action": "note", "note": "x", "key": "\\u0000"}', 409, "characters"),
        (b" " * (ORDER_BYTES_MAX + 1), 413, f"{ORDER_BYTES_MAX} bytes"),
    ],
)
def test_a_body_that_is_no_order_is_refused_with_its_faults(
    caller: Caller, body: bytes, status: int, told: str
) -> None:
    secret = caller.secret("ada", Scope.ACT)
    found, detail = problem(caller.call("POST", ACTIONS, token=secret, content=body))
    assert (found, told in detail) == (status, True), detail


def test_words_of_any_kind_are_kept_as_they_were_written(caller: Caller) -> None:
    secret = caller.secret("ada", Scope.ACT)
    note = "<script>`@everyone` \N{SNOWMAN} 'quoted' -- and\u0000 more"
    caller.call("POST", ACTIONS, token=secret, json={"action": "note", "note": note})

    [entry] = caller.get(f"/api/v1/alerts/{ALERT}")["history"]
    assert entry["note"] == note.replace("\0", "")


def test_alerts_are_listed_by_state_and_page_by_page(caller: Caller) -> None:
    secret = caller.secret("ada", Scope.ACT)
    with caller.database.writing() as session:
        a_paired_run(session, "run-bc", B, SHAS[5], scan=SLOWER)
        from_b = an_alert_about(B, SHAS[5], "run-bc", scan=9.1)
        alerts.open_once(session, from_b)
    caller.call("POST", ACTIONS, token=secret, json={"action": "fixed"})

    def ids(query: str) -> list[str]:
        return [alert["id"] for alert in caller.get(f"/api/v1/alerts?{query}")]

    assert ids("fork=demo") == [ALERT, "alert-bbbb"]
    assert ids("state=fixed") == [ALERT]
    assert ids("state=fixed&state=confirmed&limit=1") == [ALERT]
    assert ids(f"before={ALERT}") == ["alert-bbbb"]
    assert ids("fork=other") == []
    for wrong in ("state=open", "limit=0", "limit=201", "fork=%00"):
        assert problem(caller.call("GET", f"/api/v1/alerts?{wrong}"))[0] == 422


def test_what_is_not_there_is_a_problem(caller: Caller) -> None:
    secret = caller.secret("ada", Scope.ACT)
    assert problem(caller.call("GET", "/api/v1/alerts/none"))[0] == 404
    assert problem(caller.call("GET", "/api/v1/alerts/%00"))[0] == 422
    order = caller.call(
        "POST", "/api/v1/alerts/none/actions", token=secret, json={"action": "mute"}
    )
    assert problem(order) == (404, "there is no alert 'none'")


def test_precision_is_told_by_workload(caller: Caller) -> None:
    secret = caller.secret("ada", Scope.ACT)
    assert caller.get("/api/v1/precision")[0]["precision"] is None
    caller.call("POST", ACTIONS, token=secret, json={"action": "true-alarm"})

    [figure] = caller.get("/api/v1/precision?fork=demo")
    assert (figure["workload"], figure["host_class"], figure["method"]) == (
        "scan",
        "small",
        "test 1",
    )
    assert (figure["true_alarms"], figure["precision"], figure["high"]) == (1, 1.0, 1.0)
    assert 0 < figure["low"] < 0.5


def test_a_baseline_is_reset_and_taken_back(caller: Caller) -> None:
    secret = caller.secret("ada", Scope.ACT)
    with caller.database.reading() as session:
        [key] = series.of_fork(session, "demo", workload="scan", metric=THROUGHPUT.name)
    path = f"/api/v1/series/{key.id}/baseline"

    set_ = caller.call("POST", path, token=secret, json={"sha": SHAS[5], "note": "new memory"})
    assert set_.status_code == 200, set_.text
    assert (set_.json()["kind"], set_.json()["actor"]) == ("reset", "token:ada")
    assert caller.call("DELETE", f"{path}/{SHAS[5]}", token=secret).status_code == 204
    assert problem(caller.call("POST", path, json={"sha": SHAS[5]}))[0] == 401
    assert problem(caller.call("DELETE", f"{path}/{SHAS[5]}"))[0] == 401
    assert problem(caller.call("POST", path, token=secret, json={"sha": "HEAD"}))[0] == 422
    assert problem(caller.call("POST", path, token=secret, json={"sha": "f" * 40}))[0] == 404
    unknown = caller.call(
        "POST", "/api/v1/series/none/baseline", token=secret, json={"sha": SHAS[5]}
    )
    assert problem(unknown)[0] == 404


def test_reading_needs_a_token_where_it_is_not_public(database: Database) -> None:
    with database.writing() as session:
        a_longer_week(session)
    caller = Caller(database, public_read=False)
    reader, actor = caller.secret("reader", Scope.READ), caller.secret("actor", Scope.ACT)

    for path in ("/api/v1/alerts", f"/api/v1/alerts/{ALERT}", "/api/v1/precision"):
        answer = caller.call("GET", path)
        assert problem(answer)[0] == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert problem(caller.call("GET", path, token=actor))[0] == 403
        assert caller.call("GET", path, token=reader).status_code == 200
        # As a browser sends what somebody typed into its login.
        assert caller.call("GET", path, auth=("anybody", reader)).status_code == 200
        assert caller.call("GET", path, auth=("anybody", "guess")).status_code == 401


def test_a_browsers_login_gives_no_orders(database: Database) -> None:
    # Any other site could have the browser send it.
    with database.writing() as session:
        a_longer_week(session)
    caller = Caller(database, public_read=False)
    actor = caller.secret("actor", Scope.ACT)

    for path, body in (
        (f"/api/v1/alerts/{ALERT}/actions", {"action": "acknowledge"}),
        ("/api/v1/series/any/baseline", {"sha": SHAS[5]}),
    ):
        assert problem(caller.call("POST", path, auth=("anybody", actor), json=body))[0] == 401


def test_what_a_guard_makes_readable_is_open_to_readers_only(database: Database) -> None:
    with database.writing() as session:
        a_longer_week(session)
    for public, status in ((True, 200), (False, 401)):
        caller = Caller(database, public_read=public)
        guard = Guard(tokens=caller.tokens, public_read=public)
        readable = guard.readable([commits_router(database), pages_router(database)])
        caller.app = web_application([readable], missing_page=missing_page)

        for path in ("/", "/api/v1/forks", f"/api/v1/commits/demo/{SLOW}"):
            assert caller.call("GET", path).status_code == status
        described = caller.app.openapi()["paths"]["/api/v1/forks"]["get"]["responses"]
        assert {"200", "401", "403"} <= set(described)


def test_every_status_and_body_is_documented(caller: Caller) -> None:
    schema = caller.get("/openapi.json")
    order = schema["paths"]["/api/v1/alerts/{alert_id}/actions"]["post"]

    assert {"200", "401", "403", "404", "409", "413", "422"} <= set(order["responses"])
    body = order["requestBody"]["content"]["application/json"]["schema"]
    assert body["properties"]["action"] == {"$ref": "#/components/schemas/AlertAction"}
    components = schema["components"]["schemas"]
    assert {"AlertAction", "AlertState", "PrecisionFigure", "BaselineMark"} <= set(components)
    assert "culprit-found" in components["AlertState"]["enum"]
    assert set(schema["components"]["securitySchemes"]) == {"Token", "Login"}
