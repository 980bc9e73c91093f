"""Bisects without a flow: asked for over a store, and observed as a test says.

caller = BisectCaller(database)
caller.fork.push("Import"), ...
bisect = caller.ask()
caller.observe(bisect, 4, [-0.1, -0.11])
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx

from bisects.document import CommitState, Observation
from bisects.search import NextOrder
from reports.bisect import bisect_sentence
from service.core.bisections import BisectAsk
from service.core.settings import load_settings
from service.core.tokens import Scope
from service.flows.bisect_asks import BisectAsks
from service.flows.bisect_material import search_of
from service.flows.bisect_orders import job_of
from service.flows.tokens import Tokens
from service.store import bisect_jobs, bisects
from service.web.application import web_application
from service.web.bisect_api import bisects_router
from service.web.bisect_forms import bisect_forms_router
from service.web.bisect_pages import bisect_pages_router
from service.web.credentials import Guard
from service.web.pages import missing_page
from tests.fakes.bisect_world import LongFork
from tests.fakes.memory_fork import AT, StillClock
from tests.fakes.visitor import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.core.bisections import Bisect
    from service.store.database import Database


class HeardFlow:
    """What a flow was asked to do."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[tuple[str, tuple[str, ...]]] = []

    def begin(self, bisect_id: str) -> None:
        self.begun.append(bisect_id)

    def cancelled(self, bisect_id: str, jobs: Sequence[str]) -> None:
        self.ended.append((bisect_id, tuple(jobs)))


@dataclass
class BisectCaller:
    """Somebody who asks a service over a database, by hand and by HTTP."""

    database: Database
    public_read: bool = True
    chosen: dict[str, Any] = field(default_factory=dict)
    clock: StillClock = field(default_factory=StillClock)
    flow: HeardFlow = field(default_factory=HeardFlow)
    fork: LongFork = field(default_factory=LongFork)

    def __post_init__(self) -> None:
        self.tokens = Tokens(database=self.database, clock=self.clock)
        self.acting = self.tokens.create("ada", [Scope.ACT])[1]
        guard = Guard(tokens=self.tokens, public_read=self.public_read)
        self.asks = BisectAsks(
            database=self.database,
            clock=self.clock,
            code_host=self.fork,
            settings=load_settings(host_class="small", **self.chosen),
            flow=self.flow,
        )
        routers = [
            bisects_router(self.database, asks=self.asks, guard=guard),
            guard.readable(
                [
                    bisect_pages_router(self.database, orders=True),
                    bisect_forms_router(self.database, asks=self.asks, tokens=self.tokens),
                ]
            ),
        ]
        self.app = web_application(routers, missing_page=missing_page)

    def call(
        self, method: str, path: str, *, token: str | None = None, **named: Any
    ) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.request(method, path, headers=headers, **named)

        return asyncio.run(send())

    def get(self, path: str) -> Any:
        answer = self.call("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: object = None) -> httpx.Response:
        return self.call("POST", path, token=self.acting, json=body)

    def read(self, path: str) -> str:
        """Return the visible text of a page, blanks collapsed."""
        answer = self.call("GET", path)
        assert answer.status_code == 200, answer.text
        return visible(answer.text)

    def ask(self, **named: Any) -> Bisect:
        """Ask for a bisect of the whole branch."""
        ends = {"good": self.fork.commits[0].sha, "bad": self.fork.commits[-1].sha}
        usual = {"workload": "scan", "actor": "token:ada", "via": "api"}
        return self.asks.ask(BisectAsk(**(ends | usual | named)))[0]

    def observe(
        self,
        bisect: Bisect,
        commit: int,
        ratios: Sequence[float] = (),
        *,
        state: CommitState = CommitState.MEASURED,
        failure: str = "",
    ) -> None:
        """Store an observation, and what the search knows with it."""
        with self.database.writing() as session:
            material = bisects.material(session, bisect.id)
            jobs = bisect_jobs.of_bisect(session, bisect.id)
            wanted = NextOrder(commit=commit, sha=material.commits[commit].sha, starts=2)
            job = job_of(bisect.question, wanted, number=len(jobs), at=AT)
            bisect_jobs.create_once(session, job)
            observation = Observation(
                commit=commit,
                job=job.id,
                state=state,
                log_ratios=tuple(ratios),
                seconds=240.0,
                build_seconds=60.0,
                failure=failure,
            )
            bisect_jobs.end(session, job.id, at=AT, observation=observation)
            earlier = [one.observation for one in jobs if one.observation is not None]
            search = search_of(bisect.question, material, [*earlier, observation])
            found = search.document()
            bisects.keep(session, bisect.id, found, said=bisect_sentence(found))
