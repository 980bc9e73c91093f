"""What the double does for each operation that we use, once a request is known to be in order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from tests.fakes.github_api import actions
from tests.fakes.github_api.credentials import INSTALLATION
from tests.fakes.github_api.rules import Reply, refusal
from tests.fakes.github_api.world import NAME, OWNER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.fakes.github_api.credentials import Actor, Doorkeeper
    from tests.fakes.github_api.world import World

_PER_PAGE: Final = 30


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request that is in order."""

    actor: Actor
    #: What stands in the braces of the route.
    names: Mapping[str, str]
    query: Mapping[str, str]
    body: dict[str, Any]


class Routes:
    """The operations on a world."""

    def __init__(self, world: World, doorkeeper: Doorkeeper) -> None:
        self._world = world
        self._doorkeeper = doorkeeper
        own = f"/repos/{OWNER}/{NAME}"
        table: dict[tuple[str, str], Callable[[Request], Reply]] = {
            ("GET", "/app"): lambda _: Reply(status=200, body=world.app()),
            ("GET", "/user"): lambda _: Reply(status=200, body=world.machine()),
            ("GET", f"{own}/installation"): self._installation,
            ("POST", "/app/installations/{id}/access_tokens"): self._access_token,
            ("POST", f"{own}/check-runs"): self._new_check_run,
            ("GET", f"{own}/check-runs/{{id}}"): self._check_run,
            ("PATCH", f"{own}/check-runs/{{id}}"): self._change_check_run,
            ("GET", f"{own}/check-runs/{{id}}/annotations"): self._annotations,
            ("GET", f"{own}/commits/{{ref}}/check-runs"): self._check_runs,
            ("POST", f"{own}/statuses/{{sha}}"): self._new_status,
            ("GET", f"{own}/commits/{{ref}}/statuses"): self._statuses,
            ("GET", f"{own}/issues"): self._issues,
            ("POST", f"{own}/issues"): self._new_issue,
            ("GET", f"{own}/issues/{{number}}"): self._issue,
            ("PATCH", f"{own}/issues/{{number}}"): self._change_issue,
            ("GET", f"{own}/issues/{{number}}/comments"): self._comments,
            ("POST", f"{own}/issues/{{number}}/comments"): self._new_comment,
            ("PATCH", f"{own}/issues/comments/{{id}}"): self._change_comment,
            ("DELETE", f"{own}/issues/comments/{{id}}"): self._delete_comment,
            ("POST", f"{own}/issues/comments/{{id}}/reactions"): self._react,
            ("GET", f"{own}/collaborators/{{login}}/permission"): self._permission,
            **actions.table(world, own),
        }
        self._table = [
            (method, re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path)), do)
            for (method, path), do in table.items()
        ]

    def find(
        self, method: str, path: str
    ) -> tuple[Callable[[Request], Reply], dict[str, str]] | None:
        """Return what is done for a method and path, and the names in the path."""
        for known, pattern, do in self._table:
            match = pattern.fullmatch(path)
            if known == method and match:
                return do, match.groupdict()
        return None

    def _installation(self, _: Request) -> Reply:
        found = self._world.mould("/installation", "get", 200)
        return Reply(status=200, body={**found, "id": INSTALLATION})

    def _access_token(self, request: Request) -> Reply:
        if request.names["id"] != str(INSTALLATION):
            return refusal(404, "Not Found")
        token, until = self._doorkeeper.mint()
        ends = datetime.fromtimestamp(until, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        path = "/app/installations/{installation_id}/access_tokens"
        shape = self._world.mould(path, "post", 201)
        return Reply(status=201, body={**shape, "token": token, "expires_at": ends})

    def _new_check_run(self, request: Request) -> Reply:
        return Reply(status=201, body=self._world.new_check_run(request.body))

    def _check_run(self, request: Request) -> Reply:
        return _one(_with_id(self._world.check_runs, request))

    def _change_check_run(self, request: Request) -> Reply:
        found = _with_id(self._world.check_runs, request)
        if found is not None:
            self._world.change_check_run(found, request.body)
        return _one(found)

    def _annotations(self, request: Request) -> Reply:
        found = self._world.annotations.get(int(request.names["id"]))
        return refusal(404, "Not Found") if found is None else _page(found, request)

    def _check_runs(self, request: Request) -> Reply:
        name = request.query.get("check_name")
        found = [
            run
            for run in reversed(self._world.check_runs)
            if run["head_sha"] == request.names["ref"] and name in {None, run["name"]}
        ]
        if request.query.get("filter", "latest") == "latest":
            found = list({run["name"]: run for run in reversed(found)}.values())
        reply = _page(found, request)
        wrapped = {"total_count": len(found), "check_runs": reply.body}
        return Reply(status=200, body=wrapped, headers=reply.headers)

    def _new_status(self, request: Request) -> Reply:
        made = self._world.new_status(request.names["sha"], request.body, login=request.actor.login)
        return Reply(status=201, body=made)

    def _statuses(self, request: Request) -> Reply:
        newest_first = reversed(self._world.statuses)
        return _page([item for sha, item in newest_first if sha == request.names["ref"]], request)

    def _issues(self, request: Request) -> Reply:
        query = request.query
        wanted = set(filter(None, query.get("labels", "").split(",")))
        found = [
            item
            for item in reversed(self._world.issues)
            if query.get("state", "open") in {"all", item["state"]}
            and query.get("creator", item["user"]["login"]) == item["user"]["login"]
            and wanted <= {label["name"] for label in item["labels"]}
        ]
        return _page(found, request)

    def _new_issue(self, request: Request) -> Reply:
        return Reply(
            status=201, body=self._world.new_issue(request.body, login=request.actor.login)
        )

    def _issue(self, request: Request) -> Reply:
        return _one(self._numbered(request))

    def _change_issue(self, request: Request) -> Reply:
        found = self._numbered(request)
        if found is None:
            return refusal(404, "Not Found")
        body = request.body
        found.update({name: body[name] for name in ("title", "body", "state") if name in body})
        if "labels" in body:
            found["labels"] = self._world.labels(body["labels"])
        if "state" in body:
            found["state_reason"] = body.get("state_reason")
        found["updated_at"] = self._world.now()
        found["closed_at"] = found["updated_at"] if found["state"] == "closed" else None
        return Reply(status=200, body=found)

    def _comments(self, request: Request) -> Reply:
        number = int(request.names["number"])
        if self._numbered(request) is None:
            return refusal(404, "Not Found")
        return _page([item for on, item in self._world.comments if on == number], request)

    def _new_comment(self, request: Request) -> Reply:
        found = self._numbered(request)
        if found is None:
            return refusal(404, "Not Found")
        if found["locked"]:
            return refusal(403, "Unable to create comment because issue is locked.")
        made = self._world.new_comment(
            found["number"], request.body["body"], login=request.actor.login
        )
        return Reply(status=201, body=made)

    def _change_comment(self, request: Request) -> Reply:
        found = _with_id([item for _, item in self._world.comments], request)
        if found is not None:
            found.update(body=request.body["body"], updated_at=self._world.now())
        return _one(found)

    def _delete_comment(self, request: Request) -> Reply:
        kept = [item for item in self._world.comments if str(item[1]["id"]) != request.names["id"]]
        gone = len(kept) < len(self._world.comments)
        self._world.comments[:] = kept
        return Reply(status=204) if gone else refusal(404, "Not Found")

    def _react(self, request: Request) -> Reply:
        found = _with_id([item for _, item in self._world.comments], request)
        if found is None:
            return refusal(404, "Not Found")
        path = "/issues/comments/{comment_id}/reactions"
        mine = (found["id"], request.actor.login, request.body["content"])
        known = mine in self._world.reactions
        self._world.reactions.add(mine)
        shape = self._world.mould(path, "post", 200 if known else 201)
        body = {**shape, "content": request.body["content"]}
        return Reply(status=200 if known else 201, body=body)

    def _permission(self, request: Request) -> Reply:
        login = request.names["login"]
        permission = self._world.permissions.get(login)
        if permission is None:
            return refusal(404, f"{login} is not a user")
        path = "/collaborators/{username}/permission"
        shape = self._world.mould(path, "get", 200)
        # The example of `user` lacks what its schema asks for.
        user = {**shape["user"], "login": login, "role_name": permission}
        body = {**shape, "permission": permission, "role_name": permission, "user": user}
        return Reply(status=200, body=body)

    def _numbered(self, request: Request) -> dict[str, Any] | None:
        number = int(request.names["number"])
        return next((item for item in self._world.issues if item["number"] == number), None)


def _with_id(items: list[dict[str, Any]], request: Request) -> dict[str, Any] | None:
    return next((item for item in items if str(item["id"]) == request.names["id"]), None)


def _one(found: dict[str, Any] | None) -> Reply:
    return refusal(404, "Not Found") if found is None else Reply(status=200, body=found)


def _page(items: list[Any], request: Request) -> Reply:
    """Return one page of a list, with the header that leads to the next."""
    size = min(int(request.query.get("per_page", _PER_PAGE)), 100)
    page = int(request.query.get("page", 1))
    more = len(items) > page * size
    link = {"link": f'<https://api.github.com/next?page={page + 1}>; rel="next"'} if more else {}
    return Reply(status=200, body=items[(page - 1) * size : page * size], headers=link)
