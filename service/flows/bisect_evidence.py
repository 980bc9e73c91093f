"""What the culprit of a stored bisect does more of, by what its jobs counted.

A session and a bisect document come in, evidence for words and pages goes out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reports.bisect_evidence import culprit_jobs, evidence_of
from service.store import bisect_jobs

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from bisects.document import BisectDocument
    from reports.bisect_evidence import Evidence

#: Run documents that are read, the newest. Each has two starts, and counters per operation hardly
#: change from one start to the next.
DOCUMENTS_MAX: Final = 4


def stored_evidence(session: Session, found: BisectDocument | None) -> Evidence | None:
    """Return what the jobs of the culprit counted; None where no one commit is named."""
    if found is None:
        return None
    read = [bisect_jobs.document(session, job) for job in culprit_jobs(found)[-DOCUMENTS_MAX:]]
    return evidence_of(found, [document for document in read if document is not None])
