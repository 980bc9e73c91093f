"""A runner's log says which commit and job every line is about, in the service's form."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from forkwatch.job_log import open_job_log
from results.job import JobOrder
from tests.fakes.run_documents import sha
from tests.fakes.scripted_measurement import PLAN

if TYPE_CHECKING:
    from collections.abc import Iterator

CREDENTIAL = "credential-of-this-job-and-no-other"


@pytest.fixture
def stderr() -> Iterator[io.StringIO]:
    """What the handler writes that the door has opened."""
    stream = io.StringIO()
    root = logging.getLogger()
    before, handler = root.level, logging.StreamHandler(stream)
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield stream
    root.removeHandler(handler)
    root.setLevel(before)


def an_order(plan: str = PLAN) -> JobOrder:
    return JobOrder.model_validate(
        {
            "job": "single-bbbb",
            "run": "run-single-bbbb",
            "repository": Path("/nowhere/fork"),
            "plan": plan,
            "branch": "main",
            "suite": "commit",
            "host_class": "small",
            "candidate": sha("b"),
            "credential": CREDENTIAL,
        }
    )


def test_every_line_names_commit_and_job_and_none_the_credential(
    stderr: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORKWATCH_LOG_FORMAT", "json")
    open_job_log(an_order())
    logging.getLogger("forkwatch.runner").info("submitting with %s", CREDENTIAL)

    line = json.loads(stderr.getvalue())
    assert (line["commit"], line["job"]) == ("demo@bbbbbbbbbbbb", "single-bbbb")
    assert line["message"] == "submitting with ..."


def test_a_wrong_plan_is_not_told_here(
    stderr: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FORKWATCH_LOG_FORMAT", raising=False)
    open_job_log(an_order(plan="no plan"))
    logging.getLogger("forkwatch.runner").info("begun")

    assert "commit=fork@bbbbbbbbbbbb job=single-bbbb begun" in stderr.getvalue()
