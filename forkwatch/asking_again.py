"""Asking the same question again: what of an earlier answer must not be given once more.

An order comes in, and the folder of its job is ready for `forkwatch.comparing.do`. A finished job
is not done twice; but what an unstable host measured is no answer, and who asks again wants one.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from results.document import Outcome
from results.job import DOCUMENT_FILE
from runner.job_folder import STARTS, locked, read_document

if TYPE_CHECKING:
    from results.job import JobOrder
    from runner.settings import Home


def forget_unstable(order: JobOrder, home: Home) -> None:
    """Remove what an unstable host measured for this order, if that is how it ended.

    Raises:
        OperatorError: Somebody is at work on it.
    """
    folder = home.folder("jobs", order.job)
    with locked(folder):
        document = read_document(folder)
        if document is not None and document.outcome is Outcome.UNSTABLE:
            shutil.rmtree(folder / STARTS, ignore_errors=True)
            (folder / DOCUMENT_FILE).unlink()
