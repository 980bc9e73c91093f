"""Checks and commit statuses: what a commit looks like in lists, pull requests and branch rules.

The texts of a check come in and are on the commit once. A GitHub App writes check runs; with a
token, which GitHub does not let write them, the same is said in a commit status.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from reports.check import Conclusion
from service.channels.github.client import segment
from service.channels.github.limits import (
    ANNOTATION_LENGTH_MAX,
    ANNOTATIONS_PER_REQUEST,
    CHECK_TITLE_LENGTH_MAX,
    STATUS_LENGTH_MAX,
    SUMMARY_LENGTH_MAX,
    cut_line,
    linked,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reports.build_log import Annotation
    from reports.check import CheckText
    from service.channels.github.client import GitHubClient

NAME: Final = "forkwatch"
#: A status has no grey: what cannot be decided blocks nobody, and its description says what it is.
_STATES: Final = {
    None: "pending",
    Conclusion.SUCCESS: "success",
    Conclusion.NEUTRAL: "success",
    Conclusion.FAILURE: "failure",
}


class GitHubChecks:
    """Check runs, one for each commit, suite and key."""

    def __init__(self, client: GitHubClient) -> None:
        self._client = client

    def publish(
        self, sha: str, check: CheckText, *, suite: str, key: str, page: str | None = None
    ) -> str:
        """Put a check on a commit, or bring the one that is there up to date; return its address.

        Args:
            sha: The commit.
            check: What it says; without a conclusion it is under way.
            suite: Its name among the checks of the commit.
            key: What it is about, such as a job: another key makes another check run, as measuring
                again does, and GitHub shows the newest.
            page: Address behind "Details".

        Raises:
            CodeHostError: It may be there or not; publishing again is safe.
            RefusedError: GitHub does not allow it.
        """
        where = self._client.commits_url
        summary = linked(check.summary, commits=where, known=[sha], length_max=SUMMARY_LENGTH_MAX)
        shown = replace(check, summary=summary)
        with self._client.alone:
            found, sent = self._put(sha, shown, suite=suite, key=key, page=page)
            self._annotate(found, shown, sent=sent)
        return str(found["html_url"])

    def _put(
        self, sha: str, check: CheckText, *, suite: str, key: str, page: str | None
    ) -> tuple[Any, int]:
        """Return the check run, made or up to date, and how many annotations it has."""
        name = f"{NAME} / {suite}"
        found = self._find(sha, name=name, key=key)
        if found is not None:
            return found, self._update(found, check, page=page)
        first = check.annotations[:ANNOTATIONS_PER_REQUEST]
        body = {
            "name": name,
            "head_sha": sha,
            "external_id": key,
            **_body(check, first, page=page),
        }
        return self._client.post(f"{self._client.path}/check-runs", body), len(first)

    def _find(self, sha: str, *, name: str, key: str) -> Any | None:
        path = f"{self._client.path}/commits/{segment(sha)}/check-runs"
        # GitHub shows an App all check runs of that name, other Apps' too; the key is ours.
        runs = self._client.items(path, key="check_runs", check_name=name, filter="all")
        return next((run for run in runs if run["external_id"] == key), None)

    def _update(self, found: Any, check: CheckText, *, page: str | None) -> int:
        """Say what has changed; return how many annotations are there already."""
        there = int(found["output"]["annotations_count"] or 0)
        # Annotations are only ever added to: those that are there stay, and are not sent again.
        body = _body(check, (), page=page)
        if not _says(found, body):
            self._client.patch(f"{self._client.path}/check-runs/{found['id']}", body)
        return there

    def _annotate(self, found: Any, check: CheckText, *, sent: int) -> None:
        """Send the annotations that did not fit into the first request."""
        for begin in range(sent, len(check.annotations), ANNOTATIONS_PER_REQUEST):
            page = check.annotations[begin : begin + ANNOTATIONS_PER_REQUEST]
            output = {**_texts(check), "annotations": [_annotation(item) for item in page]}
            path = f"{self._client.path}/check-runs/{found['id']}"
            self._client.patch(path, {"output": output})


class GitHubStatuses:
    """Commit statuses, one context for each suite."""

    def __init__(self, client: GitHubClient) -> None:
        self._client = client

    def publish(
        self, sha: str, check: CheckText, *, suite: str, key: str, page: str | None = None
    ) -> str:
        """Put a status on a commit unless it says so already; return where it leads.

        Arguments and errors are those of `GitHubChecks.publish`; a status has no key, because the
        newest of a context counts.
        """
        del key
        body = {
            "state": _STATES[check.conclusion],
            "context": f"{NAME} / {suite}",
            "description": cut_line(check.title, STATUS_LENGTH_MAX),
            **({"target_url": page} if page else {}),
        }
        with self._client.alone:
            newest = self._newest(sha, str(body["context"]))
            if newest is None or not _repeats(newest, body):
                newest = self._client.post(f"{self._client.path}/statuses/{segment(sha)}", body)
        return page or str(newest["url"])

    def _newest(self, sha: str, context: str) -> Any | None:
        path = f"{self._client.path}/commits/{segment(sha)}/statuses"
        # The newest come first.
        return next((item for item in self._client.items(path) if item["context"] == context), None)


def _body(
    check: CheckText, annotations: Sequence[Annotation], *, page: str | None
) -> dict[str, Any]:
    output = _texts(check)
    if annotations:
        output["annotations"] = [_annotation(item) for item in annotations]
    state: dict[str, Any] = {"status": "queued" if check.queued else "in_progress"}
    if check.conclusion is not None:
        state = {"status": "completed", "conclusion": check.conclusion.value}
    return {**state, **({"details_url": page} if page else {}), "output": output}


def _texts(check: CheckText) -> dict[str, Any]:
    return {
        "title": cut_line(check.title, CHECK_TITLE_LENGTH_MAX),
        "summary": check.summary,
    }


def _annotation(item: Annotation) -> dict[str, Any]:
    return {
        "path": item.path,
        "start_line": item.line,
        "end_line": item.line,
        "annotation_level": "failure",
        "title": cut_line(item.title, CHECK_TITLE_LENGTH_MAX),
        "message": cut_line(item.message, ANNOTATION_LENGTH_MAX),
    }


def _says(found: Any, body: dict[str, Any]) -> bool:
    """Whether a check run says all that already."""
    texts = all(found["output"].get(name) == value for name, value in body["output"].items())
    rest = all(found.get(name) == value for name, value in body.items() if name != "output")
    return texts and rest


def _repeats(newest: Any, body: dict[str, Any]) -> bool:
    """Whether a status says all that already; Gitea has its state under another name."""
    found = {"state": newest.get("status"), **newest}
    return all(found.get(name) == value for name, value in body.items())
