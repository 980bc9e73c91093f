"""Progress: what a job tells whoever watches it. The product is the document, not this."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from detectors.sequential import Look
    from results.document import Start
    from results.slice import Slice


class Progress(Protocol):
    """Watches a job."""

    def stage(self, name: str, detail: str) -> None:
        """A stage of the job begins: checkout, build, dataset, measure."""

    def piece(self, start: int, piece: Slice) -> None:
        """A slice was measured in the start with this index."""

    def start(self, start: Start, *, of: int) -> None:
        """A start is complete; `of` is how many the job will have at most."""

    def look(self, workload: str, look: Look) -> None:
        """The evidence on one workload of a pair, after a start."""
