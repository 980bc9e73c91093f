"""Somebody who looks at pages that take orders, and sends their forms as a browser does."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import httpx

from service.flows.alert_actions import StoredAlertActions
from service.flows.tokens import Tokens
from service.web.alert_pages import AlertDesk
from service.web.application import web_application
from service.web.pages import missing_page, pages_router
from tests.fakes.memory_fork import StillClock
from tests.fakes.visitor import visible

if TYPE_CHECKING:
    from service.core.tokens import Scope
    from service.store.database import Database


class PageClerk:
    """A service of pages over a database, with its desk for orders."""

    def __init__(self, database: Database, *, clock: StillClock | None = None) -> None:
        self.database = database
        self.clock = clock or StillClock()
        self.tokens = Tokens(database=database, clock=self.clock)
        self.settled: list[int] = []
        actions = StoredAlertActions(database, self.clock, settled=self.settled.append)
        desk = AlertDesk(actions=actions, tokens=self.tokens)
        router = pages_router(database, clock=self.clock, desk=desk)
        self.app = web_application([router], missing_page=missing_page)

    def secret(self, name: str, *scopes: Scope) -> str:
        """Return a new token's text."""
        return self.tokens.create(name, scopes)[1]

    def ask(self, method: str, path: str, **named: object) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.request(method, path, **named)  # type: ignore[arg-type]

        return asyncio.run(send())

    def read(self, path: str) -> str:
        """Return the visible text of a page."""
        answer = self.ask("GET", path)
        assert answer.status_code == 200, answer.text
        return visible(answer.text)

    def order(self, path: str, **fields: str) -> httpx.Response:
        """Send the form of a page with these fields filled in, with the key it came with."""
        html = self.ask("GET", path).text
        key = re.search(r'name="key" value="([0-9a-f]+)"', html)
        assert key is not None, "the page has no form"
        return self.ask("POST", path, data={"key": key.group(1), **fields})
