"""The double of Buildkite's REST API knows the fields that Buildkite's own client in Go knows."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

from tests.ci import tools
from tests.fakes.buildkite_rest import BUILD, CREATE_BUILD

pytestmark = pytest.mark.ci

MODULE = "github.com/buildkite/go-buildkite/v4@v4.1.0"
#: What a field of Go is in JSON.
KINDS = {
    "string": str,
    "bool": bool,
    "int64": int,
    "Author": dict,
    "map[string]string": dict,
}


@cache
def builds() -> str:
    """Return the file of the client that knows builds, as Go's own client fetches it."""
    said = tools.go("mod", "download", "-json", MODULE, GOFLAGS="-mod=mod")
    return (Path(json.loads(said)["Dir"]) / "builds.go").read_text()


def fields(struct: str) -> dict[str, str]:
    """Return the fields of a struct in JSON, with their types in Go."""
    body = re.search(rf"^type {struct} struct {{\n(.*?)^}}", builds(), re.DOTALL | re.MULTILINE)
    assert body, f"there is no {struct}"
    found = re.findall(r'^\t\w+\s+(\S+)\s+`json:"(\w+)[^`]*`', body[1], re.MULTILINE)
    return {name: kind for kind, name in found}


def test_a_request_for_a_build_has_the_fields_of_the_client():
    known = {name: KINDS[kind] for name, kind in fields("CreateBuild").items()}

    assert known == CREATE_BUILD


def test_a_build_has_the_fields_of_the_client():
    assert set(fields("Build")) == BUILD
