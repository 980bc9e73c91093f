"""Payloads of GitHub's webhooks with what the service reads, and a little that it does not."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tests.fakes.memory_fork import AT

REPOSITORY = "acme/mariadb-fork"
ISSUE_URL = "https://api.github.com/repos/acme/mariadb-fork/pulls/7"


def when(seconds: float) -> datetime:
    """Return a time so many seconds after the beginning of all tests."""
    return AT + timedelta(seconds=seconds)


def written(at: datetime) -> str:
    """Return a time as GitHub writes it."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def push_payload(*, branch: str = "main", at: datetime = AT) -> dict[str, Any]:
    """Return news of a push."""
    return {
        "ref": f"refs/heads/{branch}",
        "before": "0" * 40,
        "after": "1" * 40,
        "repository": {"full_name": REPOSITORY, "pushed_at": int(at.timestamp())},
        "pusher": {"name": "ada"},
    }


def pull_payload(
    number: int = 7,
    *,
    action: str = "opened",
    head: str = "a" * 40,
    before: str | None = None,
    base: str = "main",
    head_repository: str | None = REPOSITORY,
    draft: bool = False,
    state: str = "open",
    at: datetime = AT,
) -> dict[str, Any]:
    """Return news of a pull request."""
    return {
        "action": action,
        "number": number,
        **({"before": before, "after": head} if before else {}),
        "pull_request": {
            "number": number,
            "state": state,
            "draft": draft,
            "updated_at": written(at),
            "title": "Faster",
            "head": {
                "sha": head,
                "ref": "faster",
                "repo": {"full_name": head_repository} if head_repository else None,
            },
            "base": {"ref": base, "sha": "b" * 40, "repo": {"full_name": REPOSITORY}},
        },
        "repository": {"full_name": REPOSITORY},
        "sender": {"login": "ada", "type": "User"},
    }


def comment_payload(
    text: str,
    *,
    number: int = 7,
    comment: int = 4711,
    login: str = "ada",
    on_pull_request: bool = True,
    issue_login: str = "bob",
    issue_body: str | None = "Please look.",
    action: str = "created",
    at: datetime = AT,
) -> dict[str, Any]:
    """Return news of a comment."""
    issue: dict[str, Any] = {
        "number": number,
        "user": {"login": issue_login},
        "body": issue_body,
        "title": "Faster",
    }
    if on_pull_request:
        issue["pull_request"] = {"url": ISSUE_URL}
    return {
        "action": action,
        "issue": issue,
        "comment": {
            "id": comment,
            "user": {"login": login},
            "body": text,
            "created_at": written(at),
            "author_association": "OWNER",
        },
        "repository": {"full_name": REPOSITORY},
    }
