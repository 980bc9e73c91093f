"""GitHub's own description of its API, reduced to what we use; fetched once, never committed.

npm's client brings the package in which GitHub publishes its OpenAPI description. What comes out is
one small document: our paths, and everything that they refer to.

    python -m tests.fakes.github_api.description     fetches it ahead of the tests
"""

from __future__ import annotations

import hashlib
import json
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

from results.atomic import write_atomically
from tests.fakes.npm_package import NpmMember

FETCHED: Final = NpmMember(
    package="@octokit/openapi@23.0.2",
    member="api.github.com.json",
    sha256="829b4bebb19a53133289f7b0bc819f4f1118115821db2ca9f25e9ee995a7da2a",
)
#: Changes when `USED` does.
REDUCED: Final = Path(__file__).parents[3] / ".forkwatch" / "github-api"

_REPOSITORY: Final = "/repos/{owner}/{repo}"
#: What the service asks of GitHub, and what its tests look at.
USED: Final = {
    "/app": ("get",),
    "/user": ("get",),
    "/app/installations/{installation_id}/access_tokens": ("post",),
    f"{_REPOSITORY}/installation": ("get",),
    f"{_REPOSITORY}/check-runs": ("post",),
    f"{_REPOSITORY}/check-runs/{{check_run_id}}": ("get", "patch"),
    f"{_REPOSITORY}/check-runs/{{check_run_id}}/annotations": ("get",),
    f"{_REPOSITORY}/commits/{{ref}}/check-runs": ("get",),
    f"{_REPOSITORY}/statuses/{{sha}}": ("post",),
    f"{_REPOSITORY}/commits/{{ref}}/statuses": ("get",),
    f"{_REPOSITORY}/issues": ("get", "post"),
    f"{_REPOSITORY}/issues/{{issue_number}}": ("get", "patch"),
    f"{_REPOSITORY}/issues/{{issue_number}}/comments": ("get", "post"),
    f"{_REPOSITORY}/issues/comments/{{comment_id}}": ("get", "patch", "delete"),
    f"{_REPOSITORY}/issues/comments/{{comment_id}}/reactions": ("post",),
    f"{_REPOSITORY}/collaborators/{{username}}/permission": ("get",),
    f"{_REPOSITORY}/actions/workflows/{{workflow_id}}/dispatches": ("post",),
    f"{_REPOSITORY}/actions/workflows/{{workflow_id}}/runs": ("get",),
    f"{_REPOSITORY}/actions/runs/{{run_id}}": ("get",),
    f"{_REPOSITORY}/actions/runs/{{run_id}}/cancel": ("post",),
}


class Description:
    """The reduced document, and examples from it."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    def example(self, path: str, method: str, status: int) -> Any:
        """Return GitHub's own example of a response."""
        operation = self.document["paths"][path][method]
        content = self.resolve(operation["responses"][str(status)])["content"]
        media = content["application/json"]
        example = media["example"] if "example" in media else next(iter(media["examples"].values()))
        example = self.resolve(example)
        return json.loads(json.dumps(example.get("value", example)))

    def resolve(self, item: Any) -> Any:
        """Return what a reference refers to, or the item itself."""
        while isinstance(item, dict) and "$ref" in item:
            item = _at(self.document, item["$ref"])
        return item


@cache
def description() -> Description:
    """Return the description, fetching it where it was not used before."""
    used = hashlib.sha256(json.dumps(USED).encode()).hexdigest()[:12]
    path = REDUCED / f"{FETCHED.sha256[:12]}-{used}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(reduced(json.loads(FETCHED.fetch()))))
    return Description(json.loads(path.read_text()))


def reduced(full: dict[str, Any]) -> dict[str, Any]:
    """Return a document with the used operations and all that they refer to."""
    paths = {
        path: {method: full["paths"][path][method] for method in methods}
        for path, methods in USED.items()
    }
    small: dict[str, Any] = {
        "openapi": full["openapi"],
        "info": full["info"],
        "servers": full["servers"],
        "paths": paths,
        "components": {},
    }
    waiting, known = list(_references(paths)), set()
    while waiting:
        reference = waiting.pop()
        if reference in known:
            continue
        known.add(reference)
        target = _at(full, reference)
        _, kind, name = reference.removeprefix("#/").split("/", 2)
        small["components"].setdefault(kind, {})[name] = target
        waiting += _references(target)
    _allow_null(small)
    return small


def _allow_null(item: Any) -> None:
    """Let what is nullable be null where its values are listed, too.

    GitHub means it so: the `state_reason` of an open issue is null, and is not in its list.
    """
    if isinstance(item, dict):
        values = item.get("enum")
        if item.get("nullable") is True and isinstance(values, list) and None not in values:
            values.append(None)
        for inner in item.values():
            _allow_null(inner)
    elif isinstance(item, list):
        for inner in item:
            _allow_null(inner)


def _references(item: Any) -> list[str]:
    if isinstance(item, dict):
        own = [item["$ref"]] if isinstance(item.get("$ref"), str) else []
        return own + [found for value in item.values() for found in _references(value)]
    if isinstance(item, list):
        return [found for value in item for found in _references(value)]
    return []


def _at(document: dict[str, Any], reference: str) -> Any:
    found: Any = document
    for step in reference.removeprefix("#/").split("/"):
        found = found[step.replace("~1", "/").replace("~0", "~")]
    return found


if __name__ == "__main__":
    sys.stdout.write(f"{len(description().document['paths'])} paths of {FETCHED.package}\n")
