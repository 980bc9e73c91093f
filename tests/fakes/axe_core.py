"""axe-core, which looks for what keeps people from using a page; fetched once by npm's client.

A page of a browser comes in, what axe-core calls a violation goes out. It is a tool of the tests
alone, never committed and never served.

    python -m tests.fakes.axe_core     fetches it ahead of the tests
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from results.atomic import write_atomically
from tests.fakes.npm_package import NpmMember

if TYPE_CHECKING:
    from playwright.sync_api import Page

FETCHED: Final = NpmMember(
    package="axe-core@4.10.3",
    member="package/axe.min.js",
    sha256="880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb",
)
KEPT: Final = Path(__file__).parents[2] / ".forkwatch" / "axe-core"


@cache
def script() -> str:
    """Return the script."""
    path = KEPT / f"{FETCHED.sha256[:12]}.js"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, FETCHED.fetch().decode())
    return path.read_text()


def violations(page: Page) -> list[str]:
    """Return a line for each element of a page that breaks a rule, best practices included."""
    # Handed over through the browser's own protocol, so that the page's policy stays as it is.
    page.evaluate(script())
    found: dict[str, Any] = page.evaluate(
        "() => axe.run(document, { resultTypes: ['violations'] })"
    )
    return [
        f"{rule['id']} ({rule['impact']}): {node['html'][:160]}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


if __name__ == "__main__":
    sys.stdout.write(f"{len(script())} characters of {FETCHED.package}\n")
