"""Run documents as given, with one thing changed, stored as a story of `stored_fork` would be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.fakes.stored_fork import a_stored_run

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from results.document import RunDocument


@dataclass(frozen=True)
class Given:
    """A story that is told already."""

    document: RunDocument

    def build(self) -> RunDocument:
        """Return the document."""
        return self.document


def stored(session: Session, document: RunDocument, **told: Any) -> RunDocument:
    """Store a document with its job and samples, and the verdicts that are told of it."""
    return a_stored_run(session, Given(document), **told)


def on_host(document: RunDocument, host_class: str) -> RunDocument:
    """Return the same from another host class."""
    host = document.host.model_copy(update={"host_class": host_class})
    return document.model_copy(update={"host": host})


def with_slices(document: RunDocument, **changed: Any) -> RunDocument:
    """Return the same with other values in every slice."""
    starts = tuple(
        start.model_copy(
            update={"slices": tuple(piece.model_copy(update=changed) for piece in start.slices)}
        )
        for start in document.starts
    )
    return document.model_copy(update={"starts": starts})
