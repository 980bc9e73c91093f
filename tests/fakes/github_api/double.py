"""A GitHub of our own, which takes and gives only what GitHub's description allows.

Requests are refused as GitHub would refuse them; a response that GitHub would never give is a fault
of the double, kept in `faults`. Mishaps can be ordered: errors before or after the deed, limits of
requests, answers by somebody in between. `server` puts it on loopback.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tests.fakes.github_api.contract import Call, Contract, Given
from tests.fakes.github_api.credentials import Doorkeeper
from tests.fakes.github_api.routes import Request, Routes
from tests.fakes.github_api.rules import (
    Reply,
    inconsistent,
    not_granted,
    refusal,
    too_long,
    wrong_door,
)
from tests.fakes.github_api.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.fakes.github_api.description import Description

#: Of an hour.
REQUESTS_MAX: Final = 5000


@dataclass(kw_only=True)
class Mishap:
    """Something that goes wrong the next `times` times."""

    method: str
    path: re.Pattern[str]
    reply: Reply
    #: The deed is done all the same, and the answer lost.
    after: bool
    times: int = 1


class GitHubDouble:
    """One repository, and everybody who may ask about it."""

    def __init__(self, description: Description, contract: Contract) -> None:
        self.world = World(description)
        self.doorkeeper = Doorkeeper()
        #: As (method, path, status), in order.
        self.asked: list[tuple[str, str, int]] = []
        #: Responses that GitHub would never give.
        self.faults: list[str] = []
        self._contract = contract
        self._routes = Routes(self.world, self.doorkeeper)
        self._mishaps: list[Mishap] = []

    def go_wrong(
        self, method: str, path: str, reply: Reply, *, after: bool = False, times: int = 1
    ) -> None:
        """Answer the next requests so; with `after`, do first what they ask."""
        self._mishaps.append(
            Mishap(method=method, path=re.compile(path), reply=reply, after=after, times=times)
        )

    def writes(self) -> Counter[str]:
        """Return how often each kind of write was answered with success."""
        return Counter(
            method
            for method, path, status in self.asked
            if method != "GET" and status < 300 and not path.endswith("/access_tokens")
        )

    def reply(
        self, method: str, path: str, *, query: Mapping[str, str], authorization: str, body: bytes
    ) -> Reply:
        """Return the answer to a request, with the headers that all have."""
        mishap = self._mishap(method, path)
        if mishap is not None and not mishap.after:
            reply = mishap.reply
        else:
            done = self._do(method, path, query=query, authorization=authorization, body=body)
            reply = done if mishap is None else mishap.reply
        self.asked.append((method, path, reply.status))
        headers = {
            "x-ratelimit-limit": str(REQUESTS_MAX),
            "x-ratelimit-remaining": str(REQUESTS_MAX - len(self.asked)),
            "x-ratelimit-reset": str(int(time.time()) + 1800),
            "x-ratelimit-resource": "core",
        }
        return replace(reply, headers=headers | reply.headers)

    def _mishap(self, method: str, path: str) -> Mishap | None:
        for mishap in self._mishaps:
            if mishap.times and mishap.method == method and mishap.path.search(path):
                mishap.times -= 1
                return mishap
        return None

    def _do(
        self, method: str, path: str, *, query: Mapping[str, str], authorization: str, body: bytes
    ) -> Reply:
        actor = self.doorkeeper.who(authorization)
        closed = wrong_door(actor, path)
        if closed is not None or actor is None:
            return closed or refusal(401, "Bad credentials")
        found = self._routes.find(method, path)
        if found is None:
            return refusal(404, "Not Found")
        do, names = found
        call = Call(method=method, path=path, query=query, body=body)
        fault = self._contract.fault_of_request(call)
        if fault:
            return refusal(422, "Invalid request.", fault)
        values = json.loads(body) if body else {}
        refused = (
            not_granted(self.world, actor, method, path)
            or too_long(path, values)
            or inconsistent(path, values)
        )
        if refused is not None:
            return refused
        reply = do(Request(actor=actor, names=names, query=query, body=values))
        self._look_at(call, reply)
        return reply

    def _look_at(self, call: Call, reply: Reply) -> None:
        if reply.status >= 400:
            # GitHub refuses in more ways than it describes.
            return
        data = b"" if reply.status == 204 else json.dumps(reply.body).encode()
        fault = self._contract.fault_of_response(call, Given(status_code=reply.status, data=data))
        if fault:
            self.faults.append(f"{call.method} {call.path} {reply.status}: {fault}")


def secondary_limit(seconds: int | None) -> Reply:
    """Return GitHub's refusal of too many requests at once, with or without a time."""
    message = "You have exceeded a secondary rate limit. Please wait a few minutes."
    headers: dict[str, Any] = {} if seconds is None else {"retry_after": str(seconds)}
    return refusal(403, message, **headers)


def primary_limit(reset: float) -> Reply:
    """Return GitHub's refusal when the hour's requests are used up."""
    return refusal(
        403,
        "API rate limit exceeded for installation ID 77.",
        x_ratelimit_remaining="0",
        x_ratelimit_reset=str(int(reset)),
    )
