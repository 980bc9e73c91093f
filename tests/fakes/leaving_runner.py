"""A program that stands in for `forkwatch run --job FOLDER` where nothing is to be submitted.

It measures by reading subjects, as `scripted_runner` does, and leaves the document in the folder.
"""

from __future__ import annotations

import fcntl
import sys
from pathlib import Path

from results.atomic import write_atomically
from results.job import DOCUMENT_FILE, LOCK_FILE, ORDER_FILE, JobOrder
from tests.fakes.scripted_measurement import measure
from tests.fakes.scripted_runner import subjects


def main(folder: Path) -> None:
    order = JobOrder.model_validate_json((folder / ORDER_FILE).read_text())
    with (folder / LOCK_FILE).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        document = measure(order, subjects(order))
        write_atomically(folder / DOCUMENT_FILE, document.model_dump_json())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
