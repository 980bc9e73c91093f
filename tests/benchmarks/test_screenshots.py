"""The story that the pages are photographed with: the real flow finds in it what was told."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx

from benchmarks.screenshots.__main__ import told
from benchmarks.screenshots.story import STEPS
from tests.fakes.visitor import visible

if TYPE_CHECKING:
    from pathlib import Path

    from fastapi import FastAPI


def opened(app: FastAPI, path: str) -> httpx.Response:
    async def get() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get(path)

    return asyncio.run(get())


def test_a_told_loss_is_found_and_every_page_can_be_photographed(tmp_path: Path) -> None:
    slow = next(step for step in STEPS if "scan" in step.speeds)
    with told(tmp_path, (*STEPS[:2], slow)) as found:
        texts = {name: opened(found.app, path) for name, path in found.pages.items()}

    assert {name: text.status_code for name, text in texts.items()} == dict.fromkeys(texts, 200)
    assert "scan is" in visible(texts["overview"].text)
    assert "github:barbara" in visible(texts["overview"].text)
    assert "Handler_read_rnd_next" in visible(texts["compare"].text)
    assert "1 commit slower" in visible(texts["digest"].text)
    assert "Which commit changed scan?" in visible(texts["bisect"].text)
    assert "Nobody has called an alarm true" in visible(texts["precision"].text)
    assert {"bisects", "digests", "host", "hosts", "releases", "trend"} <= set(texts)
