"""Somebody who opens pages of an application without a network, and reads them."""

from __future__ import annotations

import asyncio
import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import httpx
from fastapi import FastAPI

from service.web.pages import missing_page, pages_router

if TYPE_CHECKING:
    from service.store.database import Database


class Visitor:
    """Somebody who opens pages of an application without a network."""

    def __init__(self, database: Database, **chosen: Any) -> None:
        self.database = database
        self.app = FastAPI()
        self.app.include_router(pages_router(database, **chosen))
        self.app.add_exception_handler(404, missing_page)

    def open(self, path: str, **headers: str) -> httpx.Response:
        async def get() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.get(path, headers=headers)

        return asyncio.run(get())

    def read(self, path: str) -> str:
        """Return the visible text of a page, blanks collapsed."""
        response = self.open(path)
        assert response.status_code == 200, response.text
        return visible(response.text)


class Text(HTMLParser):
    """Collects what a reader sees, and every tag."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside_script = tag == "script"

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self.inside_script = False

    def handle_data(self, data: str) -> None:
        if not self.inside_script:
            self.words.append(data)


def parsed(html: str) -> Text:
    reader = Text()
    reader.feed(html)
    return reader


def visible(html: str) -> str:
    return " ".join(" ".join(parsed(html).words).split())


def charts_of(html: str) -> list[dict[str, Any]]:
    """Return the chart specifications that a page carries."""
    found = re.findall(r'<script type="application/json">(.*?)</script>', html, re.DOTALL)
    return [json.loads(text) for text in found]
