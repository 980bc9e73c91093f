"""Payloads of webhooks are read by type and length, and by nothing else."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from service.channels.github.webhooks import (
    CommentMade,
    Ignored,
    PullRequestChanged,
    Push,
    read_news,
)
from tests.fakes.hub_signature import body_of
from tests.fakes.webhook_payloads import (
    REPOSITORY,
    comment_payload,
    pull_payload,
    push_payload,
    when,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    2**63,
    1.5,
    "",
    "x" * 70_000,
    "\x00",
    [],
    [[]],
    {},
    {"a": {"b": 1}},
]


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("push", push_payload()),
        ("pull_request", pull_payload(action="synchronize", before="c" * 40)),
        ("issue_comment", comment_payload("/forkwatch run")),
    ],
)
def test_nothing_in_a_payload_is_trusted_beyond_its_type_and_length(
    event: str, payload: dict[str, Any]
) -> None:
    """Whatever stands anywhere, it is read as what it should be or not at all."""
    for path in _paths(payload):
        for odd in ODD:
            changed = copy.deepcopy(payload)
            _put(changed, path, odd)
            news = read_news(event, json.dumps(changed).encode(), repository=REPOSITORY)

            assert isinstance(news, Push | PullRequestChanged | CommentMade | Ignored)
            if isinstance(news, PullRequestChanged):
                assert 0 < news.number < 2**31
                assert len(news.head_sha) == 40
                assert 0 < len(news.base) <= 200
            if isinstance(news, CommentMade):
                assert 0 < news.comment <= 2**53
                assert 0 < len(news.login) <= 100
                assert len(news.text) <= 65_536


def _paths(value: Any, *above: str) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield (*above, name)
            yield from _paths(inner, *above, name)


def _put(payload: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    *most, last = path
    for name in most:
        payload = payload[name]
    payload[last] = value


@pytest.mark.parametrize(
    ("head_repository", "outside"),
    [(REPOSITORY, False), ("mallory/mariadb-fork", True), (None, True)],
)
def test_a_head_from_elsewhere_or_nowhere_is_outside(
    head_repository: str | None, *, outside: bool
) -> None:
    payload = pull_payload(head_repository=head_repository)
    news = read_news("pull_request", body_of(payload), repository=REPOSITORY)

    assert isinstance(news, PullRequestChanged)
    assert news.outside is outside


@pytest.mark.parametrize(
    ("body", "alert"),
    [
        ("<!-- forkwatch alert:alert-5f -->\nslower", "alert-5f"),
        ("<!-- forkwatch alert:alert-5f -->\r\nslower", "alert-5f"),
        ("see\n<!-- forkwatch alert:alert-5f -->", None),
        ("<!-- forkwatch alert:../x -->", None),
        ("<!-- forkwatch pull:commit -->", None),
        (None, None),
    ],
)
def test_an_alert_is_named_in_the_first_line_of_its_issue(
    body: str | None, alert: str | None
) -> None:
    payload = comment_payload("/forkwatch accept it is meant", issue_body=body)
    news = read_news("issue_comment", body_of(payload), repository=REPOSITORY)

    assert isinstance(news, CommentMade)
    assert news.alert == alert


def test_times_are_read_in_both_of_githubs_forms() -> None:
    in_words = push_payload() | {
        "repository": {"full_name": REPOSITORY, "pushed_at": "2026-11-03T06:30:09Z"}
    }
    for payload in (push_payload(at=when(9)), in_words):
        news = read_news("push", body_of(payload), repository=REPOSITORY)

        assert news == Push(branch="main", at=when(9))
