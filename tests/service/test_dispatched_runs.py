"""What a run of a CI is given and what it may bring: its own job's order, and that job's run."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from service.core.dispatching import DispatchState
from service.core.errors import (
    BadDocumentError,
    ConflictError,
    CredentialMissingError,
    CredentialRefusedError,
    NotFoundError,
)
from service.core.model import JobStatus
from service.flows.steps import CREDENTIAL_GRACE
from tests.fakes.dispatch_scene import (
    FLOW,
    JOB,
    JOB_TIME,
    Scene,
    a_document,
    a_scene,
    order,
    text_of,
)
from tests.fakes.run_documents import sha

if TYPE_CHECKING:
    from service.store.database import Database


@pytest.fixture
def scene(kept_database: Database) -> Scene:
    return a_scene(kept_database)


def test_only_the_run_that_was_started_is_given_the_order(scene: Scene) -> None:
    with pytest.raises(NotFoundError):
        scene.runs().hand_over(scene.identity("100"), JOB, "small")
    scene.anew().start(order())
    for stranger in ("99", "", "None"):
        with pytest.raises(CredentialRefusedError, match="is not the run that was started"):
            scene.runs().hand_over(scene.identity(stranger), JOB, "small")
    assert scene.newest().state is DispatchState.ASKED

    given = scene.taken()
    assert given.order.candidate == sha("b")
    assert given.credential_expires_at == scene.clock.now() + JOB_TIME + CREDENTIAL_GRACE
    assert scene.newest().state is DispatchState.TAKEN


def test_the_run_of_an_earlier_dispatch_is_given_nothing(scene: Scene) -> None:
    scene.anew().start(order())
    scene.ci.end("100", "failure")
    assert scene.anew().status(JOB) is JobStatus.LOST
    scene.anew().start(order())

    with pytest.raises(CredentialRefusedError):
        scene.runs().hand_over(scene.identity("100"), JOB, "small")
    assert scene.runs().hand_over(scene.identity("101"), JOB, "small").order.job == JOB


def test_a_run_that_is_quicker_than_our_look_is_found_when_it_asks(scene: Scene) -> None:
    scene.ci.tells = False
    scene.anew().start(order())
    assert scene.newest().external_id is None

    assert scene.taken().order.job == JOB


def test_a_run_of_another_branch_is_given_nothing(scene: Scene) -> None:
    scene.anew().start(order())

    with pytest.raises(CredentialRefusedError, match="is of the branch 'evil'"):
        scene.runs().hand_over(scene.identity("100", branch="evil"), JOB, "small")
    assert scene.newest().state is DispatchState.ASKED


def test_a_machine_of_another_host_class_loses_the_job_and_is_told(scene: Scene) -> None:
    dispatcher = scene.anew()
    dispatcher.start(order())
    with pytest.raises(CredentialRefusedError, match="landed on a machine of the host class"):
        scene.runs().hand_over(scene.identity("100"), JOB, "large")

    assert dispatcher.status(JOB) is JobStatus.LOST
    assert "'large' and was ordered for 'small'" in dispatcher.why_lost(JOB)
    assert scene.woken == [FLOW]
    dispatcher.start(order())
    assert scene.taken().order.job == JOB


def test_a_document_from_another_host_class_loses_the_job(scene: Scene) -> None:
    scene.anew().start(order())
    credential, document = scene.credential(), a_document()
    host = document.host.model_copy(update={"host_class": "large"})

    with pytest.raises(CredentialRefusedError, match="'large'"):
        scene.bring(credential, document.model_copy(update={"host": host}))
    assert scene.anew().status(JOB) is JobStatus.LOST


def test_a_run_may_ask_again_and_its_newest_credential_counts(scene: Scene) -> None:
    scene.anew().start(order())
    runs = scene.runs()
    used = scene.identity("100", token="used")
    first = runs.hand_over(used, JOB, "small").order.credential
    with pytest.raises(CredentialMissingError, match="used before"):
        runs.hand_over(used, JOB, "small")
    second = scene.credential()
    assert first is not None

    with pytest.raises(CredentialMissingError):
        runs.check(JOB, first.get_secret_value())
    assert runs.check(JOB, second).job == JOB


def test_a_credential_of_an_order_is_for_its_own_job_and_run(scene: Scene) -> None:
    scene.anew().start(order())
    credential, runs = scene.credential(), scene.runs()
    with pytest.raises(CredentialRefusedError):
        runs.check("single-2", credential)
    with pytest.raises(CredentialMissingError):
        runs.check(JOB, "made-up")

    for wrong in (a_document("single-2"), a_document(commit=sha("c"))):
        with pytest.raises(CredentialRefusedError):
            scene.bring(credential, wrong)
    with pytest.raises(BadDocumentError):
        runs.bring(runs.check(JOB, credential), b"{}")
    assert scene.newest().state is DispatchState.TAKEN


def test_a_document_is_kept_once(scene: Scene) -> None:
    scene.anew().start(order())
    credential = scene.credential()

    assert scene.bring(credential, a_document())
    assert not scene.bring(credential, a_document())
    with pytest.raises(ConflictError):
        scene.bring(credential, a_document(level=3.0))
    assert scene.anew().collect(JOB) == text_of(a_document())


def test_what_was_given_up_brings_nothing_any_more(scene: Scene) -> None:
    scene.anew().start(order())
    credential, runs = scene.credential(), scene.runs()
    checked_in_time = runs.check(JOB, credential)
    scene.anew().stop(JOB)

    with pytest.raises(CredentialMissingError):
        runs.check(JOB, credential)
    with pytest.raises(NotFoundError):
        runs.hand_over(scene.identity("100"), JOB, "small")
    with pytest.raises(CredentialMissingError):
        runs.bring(checked_in_time, text_of(a_document()))
    assert scene.anew().status(JOB) is JobStatus.LOST


def test_a_credential_ends_some_day(scene: Scene) -> None:
    scene.anew().start(order())
    credential = scene.credential()
    scene.clock.advance(JOB_TIME + CREDENTIAL_GRACE - timedelta(seconds=1))
    assert scene.runs().check(JOB, credential).job == JOB

    scene.clock.advance(timedelta(seconds=1))
    with pytest.raises(CredentialMissingError):
        scene.runs().check(JOB, credential)


def test_an_order_has_no_credential_in_the_store(scene: Scene) -> None:
    with_credential = order().model_copy(update={"credential": SecretStr("a-secret-of-the-flow")})
    scene.anew().start(with_credential)
    secret = scene.credential()

    assert "a-secret-of-the-flow" not in scene.newest().order
    assert secret not in scene.newest().order
