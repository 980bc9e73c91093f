"""What is in the double's one repository, in the forms that GitHub's API shows.

GitHub's own examples are the moulds, so that nothing that a client may read is missing.
"""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Protocol

from tests.fakes.github_api.credentials import APP_ID, SLUG, USER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.fakes.github_api.description import Description

OWNER: Final = "acme"
NAME: Final = "mariadb-fork"
ROOT: Final = f"https://github.com/{OWNER}/{NAME}"
_API: Final = f"https://api.github.com/repos/{OWNER}/{NAME}"
_REPOSITORY: Final = "/repos/{owner}/{repo}"
_START: Final = datetime(2026, 11, 3, 7, 0, tzinfo=UTC)


class WorkflowRunner(Protocol):
    """Whoever does the runs of the workflow; none is begun where there is nobody."""

    def begin(self, run: dict[str, Any], inputs: Mapping[str, str]) -> None:
        """Take a run that was just dispatched, and end it in the world once it is over."""
        ...

    def cancel(self, identity: int) -> bool:
        """End a run that is under way, in the world too; return whether it is."""
        ...


class World:
    """The repository."""

    def __init__(self, description: Description) -> None:
        self._description = description
        self._ids = count(1001)
        self._seconds = count()
        self._numbers = count(1)
        self.check_runs: list[dict[str, Any]] = []
        #: By check run.
        self.annotations: dict[int, list[dict[str, Any]]] = {}
        #: As (commit, status), oldest first.
        self.statuses: list[tuple[str, dict[str, Any]]] = []
        #: Pull requests are issues too.
        self.issues: list[dict[str, Any]] = []
        #: As (number, comment), oldest first.
        self.comments: list[tuple[int, dict[str, Any]]] = []
        #: As (comment, login, content).
        self.reactions: set[tuple[int, str, str]] = set()
        #: Of people: admin, write, read or none.
        self.permissions: dict[str, str] = {}
        #: What the App may do, and what a token's owner may.
        self.granted = {
            "checks": "write",
            "statuses": "write",
            "issues": "write",
            "actions": "write",
        }
        #: As (workflow's file, run), oldest first; those of `unlisted` are in no list yet.
        self.workflow_runs: list[tuple[str, dict[str, Any]]] = []
        self.unlisted: set[int] = set()
        self.runner: WorkflowRunner | None = None

    def mould(self, path: str, method: str, status: int) -> Any:
        """Return GitHub's example of a response; a path may begin below the repository."""
        full = path if path.startswith(("/app", "/user")) else f"{_REPOSITORY}{path}"
        return self._description.example(full, method, status)

    def now(self) -> str:
        """Return a time; each one is a second after the last."""
        return (_START + timedelta(seconds=next(self._seconds))).strftime("%Y-%m-%dT%H:%M:%SZ")

    def person(self, login: str) -> dict[str, Any]:
        """Return a user or a bot."""
        shape = self.mould("/issues", "post", 201)["user"]
        kind = "Bot" if login.endswith("[bot]") else "User"
        return {**shape, "login": login, "type": kind, "html_url": f"https://github.com/{login}"}

    def app(self) -> dict[str, Any]:
        """Return the App."""
        return {**self.mould("/app", "get", 200), "id": int(APP_ID), "slug": SLUG, "name": SLUG}

    def new_issue(
        self, values: dict[str, Any], *, login: str, pull: bool = False
    ) -> dict[str, Any]:
        """Open an issue or a pull request."""
        number, at = next(self._numbers), self.now()
        kind = "pull" if pull else "issues"
        issue: dict[str, Any] = {
            **self.mould("/issues", "post", 201),
            "id": next(self._ids),
            "number": number,
            "title": values["title"],
            "body": values.get("body"),
            "user": self.person(login),
            "labels": self.labels(values.get("labels", [])),
            "state": "open",
            "state_reason": None,
            "locked": False,
            "assignee": None,
            "assignees": [],
            "milestone": None,
            "comments": 0,
            "closed_at": None,
            "closed_by": None,
            "created_at": at,
            "updated_at": at,
            "url": f"{_API}/issues/{number}",
            "html_url": f"{ROOT}/{kind}/{number}",
        }
        issue.pop("pull_request", None)
        if pull:
            url = f"{_API}/pulls/{number}"
            issue["pull_request"] = {
                "url": url,
                "html_url": issue["html_url"],
                "diff_url": f"{issue['html_url']}.diff",
                "patch_url": f"{issue['html_url']}.patch",
            }
        self.issues.append(issue)
        return issue

    def labels(self, names: list[Any]) -> list[dict[str, Any]]:
        """Return labels by their names; GitHub makes those that are missing."""
        plain = [name["name"] if isinstance(name, dict) else name for name in names]
        shape = self.mould("/issues", "post", 201)["labels"][0]
        return [{**shape, "name": name, "default": False} for name in dict.fromkeys(plain)]

    def new_comment(self, number: int, body: str, *, login: str) -> dict[str, Any]:
        """Write a comment on an issue or a pull request."""
        identity, at = next(self._ids), self.now()
        comment: dict[str, Any] = {
            **self.mould("/issues/{issue_number}/comments", "post", 201),
            "id": identity,
            "body": body,
            "user": self.person(login),
            "created_at": at,
            "updated_at": at,
            "url": f"{_API}/issues/comments/{identity}",
            "html_url": f"{ROOT}/issues/{number}#issuecomment-{identity}",
            "issue_url": f"{_API}/issues/{number}",
        }
        comment.pop("performed_via_github_app", None)
        self.comments.append((number, comment))
        return comment

    def new_check_run(self, values: dict[str, Any]) -> dict[str, Any]:
        """Make a check run of the App."""
        identity = next(self._ids)
        run: dict[str, Any] = {
            **self.mould("/check-runs", "post", 201),
            "id": identity,
            "name": values["name"],
            "head_sha": values["head_sha"],
            "external_id": values.get("external_id", ""),
            "status": "queued",
            "conclusion": None,
            "details_url": None,
            "started_at": self.now(),
            "completed_at": None,
            "url": f"{_API}/check-runs/{identity}",
            "html_url": f"{ROOT}/runs/{identity}",
            "app": self.app(),
            "pull_requests": [],
            "output": {
                "title": None,
                "summary": None,
                "text": None,
                "annotations_count": 0,
                "annotations_url": f"{_API}/check-runs/{identity}/annotations",
            },
        }
        self.annotations[identity] = []
        self.check_runs.append(run)
        self.change_check_run(run, values)
        return run

    def change_check_run(self, run: dict[str, Any], values: dict[str, Any]) -> None:
        """Take over what a request says; annotations are added to those that are there."""
        for name in ("details_url", "external_id", "status", "conclusion", "started_at"):
            if name in values:
                run[name] = values[name]
        if run["conclusion"] is not None:
            run["status"], run["completed_at"] = "completed", self.now()
        output = values.get("output", {})
        for name in ("title", "summary", "text"):
            if name in output:
                run["output"][name] = output[name]
        shape = self.mould("/check-runs/{check_run_id}/annotations", "get", 200)[0]
        there = self.annotations[run["id"]]
        there += [{**shape, **annotation} for annotation in output.get("annotations", [])]
        run["output"]["annotations_count"] = len(there)

    def new_status(self, sha: str, values: dict[str, Any], *, login: str) -> dict[str, Any]:
        """Put a status on a commit."""
        identity, at = next(self._ids), self.now()
        status: dict[str, Any] = {
            **self.mould("/statuses/{sha}", "post", 201),
            "id": identity,
            "state": values["state"],
            "context": values.get("context", "default"),
            "description": values.get("description"),
            "target_url": values.get("target_url"),
            "creator": self.person(login),
            "created_at": at,
            "updated_at": at,
            "url": f"{_API}/statuses/{sha}",
        }
        self.statuses.append((sha, status))
        return status

    def new_workflow_run(self, file: str, *, branch: str, title: str) -> dict[str, Any]:
        """Begin a run of a workflow, as somebody who dispatches it does."""
        identity, at = next(self._ids), self.now()
        run: dict[str, Any] = {
            **self.mould("/actions/runs/{run_id}", "get", 200),
            "id": identity,
            "name": "forkwatch job",
            "display_title": title,
            "event": "workflow_dispatch",
            "head_branch": branch,
            "status": "queued",
            "conclusion": None,
            "created_at": at,
            "updated_at": at,
            "run_attempt": 1,
            "url": f"{_API}/actions/runs/{identity}",
            "html_url": f"{ROOT}/actions/runs/{identity}",
        }
        self.workflow_runs.append((file, run))
        return run

    def end_workflow_run(self, identity: int, conclusion: str) -> None:
        """End a run."""
        run = next(run for _, run in self.workflow_runs if run["id"] == identity)
        run.update(status="completed", conclusion=conclusion, updated_at=self.now())

    def machine(self) -> dict[str, Any]:
        """Return the owner of the token."""
        shape = self.mould("/user", "get", 200)
        return {**shape, "login": USER, "user_view_type": "private"}

    def snapshot(self) -> Any:
        """Return a copy of all that people could see, to compare with later."""
        seen = (self.check_runs, self.annotations, self.statuses, self.issues, self.comments)
        return copy.deepcopy(seen)
