"""The service writes its log as its settings say, that of DBOS included."""

from __future__ import annotations

import io
import json
import logging
from contextlib import redirect_stderr
from typing import TYPE_CHECKING

import pytest

from results.log_lines import about
from service.app.logs import FLOWS_LOGGER, open_log
from service.core.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.core.settings import Settings


@pytest.fixture
def stderr() -> Iterator[io.StringIO]:
    """What goes to stderr, with the handlers that the door opens and none of DBOS'."""
    stream = io.StringIO()
    root, flows = logging.getLogger(), logging.getLogger(FLOWS_LOGGER)
    handlers, level = list(root.handlers), root.level
    # A DBOS of another test has set these for the whole process.
    others, propagate = list(flows.handlers), flows.propagate
    flows_level, disabled = flows.level, flows.disabled
    opened = logging.StreamHandler(stream)
    root.addHandler(opened)
    root.setLevel(logging.INFO)
    flows.handlers, flows.disabled, flows.propagate = [], False, True
    flows.setLevel(logging.WARNING)
    yield stream
    root.handlers, flows.handlers, flows.propagate = handlers, others, propagate
    root.setLevel(level)
    flows.setLevel(flows_level)
    flows.disabled = disabled


def opened(stderr: io.StringIO, settings: Settings) -> None:
    """Open the log while stderr is the stream; pytest has one of its own by now."""
    with redirect_stderr(stderr):
        open_log(settings)


def test_lines_of_ours_and_of_dbos_have_the_form_that_was_chosen(stderr: io.StringIO) -> None:
    opened(stderr, load_settings(log_format="json"))
    with about(commit=("demo", "a" * 40), job="single-1"):
        logging.getLogger("forkwatch.flow").info("judged")
        logging.getLogger(FLOWS_LOGGER).warning("waits")
        logging.getLogger(FLOWS_LOGGER).info("says too much")
        logging.getLogger("httpx").info("HTTP Request: GET /?token=x")

    lines = [json.loads(line) for line in stderr.getvalue().splitlines()]
    assert [(line["logger"], line["message"]) for line in lines] == [
        ("forkwatch.flow", "judged"),
        ("dbos", "waits"),
    ]
    assert {line["commit"] for line in lines} == {"demo@aaaaaaaaaaaa"}
    assert {line["job"] for line in lines} == {"single-1"}


def test_the_secrets_of_the_settings_are_never_written(stderr: io.StringIO) -> None:
    secrets = {
        "github_token": "plain-words-of-github",
        "github_webhook_secret": "plain-words-of-webhooks",
        "slack_signing_secret": "plain-words-of-slack",
        "database_url": "postgresql://fw:plain-words-of-postgres@db/fw",
    }
    opened(stderr, load_settings(**secrets))
    for value in secrets.values():
        logging.getLogger("forkwatch").info("it was %s", value)

    said = stderr.getvalue()
    assert "plain-words" not in said
    assert said.count("it was ") == len(secrets)


def test_a_variable_that_is_almost_a_setting_is_said(
    stderr: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORKWATCH_POLL_SECOND", "3")
    monkeypatch.setenv("FORKWATCH_DATASETS_SIZE", "1GB")
    opened(stderr, load_settings())

    said = stderr.getvalue()
    assert "FORKWATCH_POLL_SECOND is no setting; did you mean FORKWATCH_POLL_SECONDS?" in said
    assert "FORKWATCH_DATASETS_SIZE" not in said
