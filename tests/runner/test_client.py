from __future__ import annotations

import gzip

import httpx
import pytest

from results.document import RunDocument
from runner.client import submit
from runner.errors import SubmitError
from tests.fakes.run_documents import a_run


class Service:
    """Answers with what it was told to, and remembers what it was sent."""

    def __init__(self, *answers: int | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self._answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer, text="because")


def submit_to(service: Service) -> str:
    return submit(
        a_run().with_samples("scan", [[50.0], [51.0]]).build(),
        url="http://service",
        credential="secret",
        transport=service.transport(),
        waits_s=(0.0, 0.0),
    )


def test_the_whole_document_is_sent_with_the_credential():
    service = Service(201)

    assert submit_to(service) == "stored"

    (request,) = service.requests
    assert request.url == "http://service/api/v1/runs"
    assert request.headers["Authorization"] == "Bearer secret"
    sent = RunDocument.model_validate_json(gzip.decompress(request.content))
    assert sent == a_run().with_samples("scan", [[50.0], [51.0]]).build()


def test_a_document_that_is_there_already_is_fine():
    assert submit_to(Service(200)) == "already stored"


def test_a_service_that_is_away_is_asked_again():
    service = Service(httpx.ConnectError("refused"), 503, 201)

    assert submit_to(service) == "stored"
    assert len(service.requests) == 3


def test_tries_are_bounded_and_the_last_reason_is_told():
    service = Service(503, 503, httpx.ConnectError("refused"))

    with pytest.raises(SubmitError, match="refused"):
        submit_to(service)
    assert service.answers == []


@pytest.mark.parametrize("status", [401, 403, 404, 409, 413, 422])
def test_a_refusal_is_final(status):
    service = Service(status, 201)

    with pytest.raises(SubmitError, match=f"{status}: because"):
        submit_to(service)
    assert len(service.requests) == 1
