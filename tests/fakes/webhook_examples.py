"""Recorded payloads of GitHub's webhooks; fetched once by npm's client, never committed.

Octokit publishes them as one file of events with examples. What comes out is a list of (event,
payload), in the order of the file.

    python -m tests.fakes.webhook_examples     fetches them ahead of the tests
"""

from __future__ import annotations

import hashlib
import json
import sys
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final

from results.atomic import write_atomically
from runner import shell

PACKAGE: Final = "@octokit/webhooks-examples@7.6.1"
MEMBER: Final = "package/api.github.com/index.json"
#: Of the member above: a registry cannot hand us other examples unnoticed.
SHA256: Final = "09d8f0c617876ae9dad22e26fea5510bfcaad50ee7e602659f6db25b87b25815"
KEPT: Final = Path(__file__).parents[2] / ".forkwatch" / "webhook-examples"
FETCH_SECONDS_MAX: Final = 600
#: Anything larger is not this file.
_MEMBER_BYTES_MAX: Final = 64 * 1024 * 1024


@cache
def examples() -> list[tuple[str, dict[str, Any]]]:
    """Return every recorded payload with the event that it was recorded of."""
    path = KEPT / f"{SHA256[:12]}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, _fetch().decode())
    return [
        (event["name"], payload)
        for event in json.loads(path.read_text())
        for payload in event["examples"]
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
    sys.stdout.write(f"{len(examples())} payloads of {PACKAGE}\n")
