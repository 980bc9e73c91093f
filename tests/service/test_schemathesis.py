"""The API keeps to its own OpenAPI: no error of ours, no status, type or shape that it never told.

Requests are made up by schemathesis from the document alone, in the process and without a socket.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import schemathesis

# Loaded late otherwise, while flows write tracebacks: Python 3.11 cannot read source in two threads
# ("AST constructor recursion depth mismatch", CPython's issue 106905), and pytest reads these.
import schemathesis.specs.openapi.negative
import schemathesis.specs.openapi.schemas
from dbos import DBOS
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from service.app.compose import Service, compose
from service.core.settings import load_settings
from service.core.tokens import Scope
from service.store import alerts, commits, hosts, migrate, runs, series
from tests.fakes.memory_fork import MemoryAlerts, StillClock
from tests.fakes.memory_pulls import MemoryPulls, PatientRunners

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BRANCH = ("Import", "Quiet", "Quiet too", "Slower scan speed=0.88")
#: Nothing waits on purpose for so long; this only bounds a hang.
PATIENCE_SECONDS = 120
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
#: Of each operation and kind. Dozens found nothing that these do not, in several minutes.
EXAMPLES = 4
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
BOUNDED = hypothesis.settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
#: DBOS draws its pauses in threads of its own, and Hypothesis takes that for ours.
OTHER_THREADS = pytest.mark.filterwarnings("ignore:Do not use the `random` module")
#: Every door is open, and who knocks at it has signed nothing. No GitHub answers, so none is told.
DOORS = {
    "github_repository": "acme/mariadb-fork",
    "github_commit_checks": False,
    "github_token": "a-token-of-nobody",
    "github_webhook_secret": "a-secret-that-nobody-knows",
    "slack_token": "xoxb-of-nobody",
    "slack_channel": "C0123456789",
    "slack_signing_secret": "a-secret-that-nobody-knows",
    "buildkite_webhook_secret": "a-secret-that-nobody-knows",
}


@dataclass(frozen=True, kw_only=True)
class Lived:
    """A service with a little in its store."""

    service: Service
    #: May do everything.
    token: str
    #: What is in the store, by the names that the API has for it.
    known: dict[str, str]


def walk(service: Service) -> None:
    """Have the branch measured to its end."""
    service.watcher.look()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with service.database.reading() as session:
            if not commits.unfinished(session, "demo"):
                return
        time.sleep(0.05)
    raise AssertionError("the flows did not finish")


def names(service: Service) -> dict[str, str]:
    with service.database.reading() as session:
        newest, *_, oldest = commits.newest(session, "demo")
        [alert] = alerts.newest(session)
        return {
            "fork": "demo",
            "sha": newest.sha,
            "baseline": oldest.sha,
            "candidate": newest.sha,
            "refs": f"{oldest.sha},{newest.sha}",
            "alert_id": alert.id,
            "run_id": runs.of_commit(session, "demo", newest.sha)[0].id,
            "series_id": series.of_fork(session, "demo")[0].id,
            "name": hosts.everything(session)[0].name,
        }


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lived]:
    home: Path = tmp_path_factory.mktemp("home")
    settings = load_settings(
        home=home,
        host_class="small",
        poll_seconds=0.05,
        public_read=False,
        requests_per_minute=0,
        **DOORS,
    )
    migrate.upgrade(settings.data_url)
    fork = MemoryPulls(*BRANCH)
    service = compose(
        settings,
        clock=StillClock(),
        code_host=fork,
        dispatcher=PatientRunners(fork),
        alerts=MemoryAlerts(),
    )
    try:
        DBOS.launch()
        service.resume()
        walk(service)
        # It is ready only while it follows the branch.
        service.watcher.start()
        _, token = service.alerting.tokens.create("everything", list(Scope))
        yield Lived(service=service, token=token, known=names(service))
    finally:
        service.watcher.stop()
        DBOS.destroy(destroy_registry=True)
        service.database.close()


@pytest.fixture
def api(lived: Lived) -> Any:
    return schemathesis.openapi.from_asgi("/openapi.json", lived.service.app)


def exercise(api: Any, mode: GenerationMode, headers: dict[str, str]) -> int:
    """Make requests up for every operation; return how many were made."""
    made = 0
    for found in api.get_all_operations():
        strategy = found.ok().as_strategy(generation_mode=mode)

        @BOUNDED
        @hypothesis.given(case=strategy)
        def ask(case: Any) -> None:
            nonlocal made
            made += 1
            case.call_and_validate(headers=headers, checks=CHECKS)

        # What has no parameters cannot be asked for wrongly.
        with contextlib.suppress(hypothesis.errors.Unsatisfiable):
            ask()
    return made


@OTHER_THREADS
def test_strangers_are_answered_as_documented(api: Any) -> None:
    assert exercise(api, GenerationMode.POSITIVE, {}) > EXAMPLES


@OTHER_THREADS
@pytest.mark.parametrize("mode", MODES)
def test_whoever_may_do_everything_is_answered_as_documented(
    api: Any, mode: GenerationMode, lived: Lived
) -> None:
    assert exercise(api, mode, {"Authorization": f"Bearer {lived.token}"}) > EXAMPLES


def test_what_is_there_is_shown_as_documented(api: Any, lived: Lived) -> None:
    shown = []
    for found in api.get_all_operations():
        operation = found.ok()
        path = {one.name: lived.known.get(one.name) for one in operation.path_parameters}
        if operation.method != "get" or None in path.values():
            continue
        asked = {one.name for one in operation.query}
        query = {name: value for name, value in lived.known.items() if name in asked - {"sha"}}
        case = operation.Case(path_parameters=path, query=query)
        headers = {"Authorization": f"Bearer {lived.token}"}
        answer = case.call_and_validate(headers=headers, checks=CHECKS)
        assert answer.status_code == 200, (operation.path, answer.text)
        shown.append(operation.path)

    assert {"/api/v1/commits/{fork}/{sha}", "/api/v1/runs/{run_id}", "/api/v1/compare"} <= {*shown}
