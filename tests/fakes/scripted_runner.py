"""A program that stands in for `forkwatch run --job FOLDER`: it measures by reading subjects.

It keeps the runner's side of the contract: the lock while it works, the document written at the
end, then submitted. Each measurement leaves a line in `measured`, so that a test can count them.
"""

from __future__ import annotations

import contextlib
import fcntl
import sys
import time
from pathlib import Path

import httpx
import pygit2

from results.atomic import write_atomically
from results.job import DOCUMENT_FILE, LOCK_FILE, ORDER_FILE, JobOrder
from runner.client import submit
from runner.errors import SubmitError
from tests.fakes.scripted_measurement import measure

MEASURING_SECONDS = 0.3
SUBMIT_WAITS_SECONDS = (0.2, 0.4)


def main(folder: Path) -> None:
    order = JobOrder.model_validate_json((folder / ORDER_FILE).read_text())
    with (folder / LOCK_FILE).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(MEASURING_SECONDS)
        with (folder / "measured").open("a") as measured:
            measured.write("once\n")
        document = measure(order, subjects(order))
        write_atomically(folder / DOCUMENT_FILE, document.model_dump_json())
        assert order.submit_to is not None
        assert order.credential is not None
        # A service that is down finds the document in the folder.
        with contextlib.suppress(SubmitError, httpx.HTTPError):
            submit(
                document,
                url=order.submit_to,
                credential=order.credential.get_secret_value(),
                waits_s=SUBMIT_WAITS_SECONDS,
            )


def subjects(order: JobOrder) -> dict[str, str]:
    repository = pygit2.Repository(str(order.repository))
    shas = [sha for sha in (order.candidate, order.baseline) if sha]
    return {sha: repository[sha].peel(pygit2.Commit).message.strip() for sha in shas}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
