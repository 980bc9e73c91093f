"""Requests and responses held against GitHub's description of its API.

A call comes in, nothing or the reason why GitHub would refuse it goes out. The description does not
say everything: what it leaves out is in `rules`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from openapi_core import OpenAPI
from openapi_core.datatypes import RequestParameters
from openapi_core.exceptions import OpenAPIError
from werkzeug.datastructures import Headers, ImmutableMultiDict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.fakes.github_api.description import Description


@dataclass(kw_only=True)
class Call:
    """A request as the validator wants it: as if it had gone to GitHub itself."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes
    host_url: str = "https://api.github.com"
    parameters: RequestParameters = field(init=False)

    def __post_init__(self) -> None:
        self.method = self.method.lower()
        self.parameters = RequestParameters(
            query=ImmutableMultiDict(self.query), header=Headers(), cookie=ImmutableMultiDict()
        )

    @property
    def content_type(self) -> str:
        return "application/json"


@dataclass(frozen=True, kw_only=True)
class Given:
    """A response as the validator wants it."""

    status_code: int
    data: bytes
    content_type: str = "application/json"
    headers: Headers = field(default_factory=Headers)


class Contract:
    """GitHub's word."""

    def __init__(self, description: Description) -> None:
        self._openapi = OpenAPI.from_dict(description.document)

    def fault_of_request(self, call: Call) -> str:
        """Return why GitHub would refuse a request, or nothing."""
        try:
            # Not `unmarshal_request`, which keeps the faults it finds to itself.
            self._openapi.validate_request(call)
        except OpenAPIError as error:
            return explain(error)
        return ""

    def fault_of_response(self, call: Call, given: Given) -> str:
        """Return why GitHub would never have answered so, or nothing."""
        try:
            self._openapi.validate_response(call, given)
        except OpenAPIError as error:
            return explain(error)
        return ""


def explain(error: BaseException) -> str:
    """Return an error with its causes on one line."""
    words = []
    step: BaseException | None = error
    while step is not None:
        faults: Any = getattr(step, "schema_errors", ())
        # Both quote the whole value, which may be a report of 64 kB.
        words.append(f"{type(step).__name__}: {str(step)[:80]}")
        words += [f"{list(fault.absolute_path)} {fault.message[-200:]}" for fault in faults]
        step = step.__cause__
    return "; ".join(words)[:2000]
