"""Debian's Chromium without a screen, told to talk to nobody but us."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, ViewportSize

PATH: Final = "/usr/bin/chromium"
ARGUMENTS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESKTOP: Final[ViewportSize] = {"width": 1280, "height": 900}
PHONE: Final[ViewportSize] = {"width": 390, "height": 844}


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run a browser for as long as a context lasts."""
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=PATH, args=list(ARGUMENTS))
        yield running
        running.close()
