"""Builds ahead: other machines of a host class build what a bisect will probably want next.

The search of a bisect and the job under way come in; jobs that only build go out to the CI that has
the machines, and which of them are done comes back. The artifacts lie in the fleet's cache, where
whoever measures finds them. Nothing waits for a build: one that is late, or comes to nothing, costs
the bisect no more than having none.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bisects.ahead import following
from results.document import Outcome
from service.core.errors import BadDocumentError, DispatchError
from service.core.model import JobStatus
from service.core.ports import ElsewhereDispatcher
from service.flows.bisect_orders import build_order_of, builds_prefix
from service.flows.intake import parse_document
from workloads.errors import CatalogError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bisects.document import BisectQuestion
    from bisects.search import NextOrder, Search
    from service.core.bisections import Material
    from service.core.ports import Dispatcher

_log = logging.getLogger("forkwatch.bisect")

#: Place of the good end, which is part of every job.
_GOOD: Final = 0


@dataclass(frozen=True, kw_only=True)
class BuildsAhead:
    """Has commits built elsewhere while another is measured, with everything it touches."""

    dispatcher: Dispatcher
    #: Builds at once; 0 has nothing built.
    most: int

    def begin(
        self,
        question: BisectQuestion,
        material: Material,
        search: Search,
        order: NextOrder,
        *,
        repository: Path,
    ) -> None:
        """Have built what will probably be wanted after an order, as far as machines may.

        What was begun once is not begun again, whatever became of it.

        Args:
            question: What is searched for.
            material: What it is searched in.
            search: As it stands while the order is done.
            order: What is measured.
            repository: The commits.
        """
        elsewhere = self._elsewhere(question.host_class)
        if elsewhere is None:
            return
        try:
            begun = elsewhere.begun(builds_prefix(question.id))
            free = self.most - sum(status is JobStatus.ALIVE for status in begun.values())
            for commit in _wanted(question, material, search, order):
                wanted = build_order_of(commit, question, material, repository=repository)
                if free > 0 and wanted.job not in begun:
                    elsewhere.start(wanted)
                    free -= 1
        except (DispatchError, CatalogError) as error:
            _log.warning("nothing more is built ahead for %s: %s", question.id, error)

    def built(self, question: BisectQuestion) -> list[str]:
        """Return the hashes of commits that were built ahead, and can be had of the fleet."""
        elsewhere = self._elsewhere(question.host_class)
        if elsewhere is None:
            return []
        begun = elsewhere.begun(builds_prefix(question.id))
        done = [job for job, status in begun.items() if status is JobStatus.FINISHED]
        return [sha for sha in map(self._built, done) if sha]

    def stop(self, question: BisectQuestion) -> None:
        """End the builds that are under way: nobody wants them any more."""
        elsewhere = self._elsewhere(question.host_class)
        if elsewhere is None:
            return
        for job, status in elsewhere.begun(builds_prefix(question.id)).items():
            if status is JobStatus.ALIVE:
                elsewhere.stop(job)

    def _elsewhere(self, host_class: str) -> ElsewhereDispatcher | None:
        """Return who has other machines of a host class, if that is wanted.

        On this machine nothing is built beside a measurement: that would be noise in it.
        """
        found = self.dispatcher
        if not self.most or not isinstance(found, ElsewhereDispatcher):
            return None
        return found if found.is_elsewhere(host_class) else None

    def _built(self, job: str) -> str:
        """Return the hash of the commit that a job has built; empty where it could not."""
        try:
            document = parse_document(self.dispatcher.collect(job), built=True)
        except (BadDocumentError, DispatchError) as error:
            _log.warning("what job %s built is not known: %s", job, error)
            return ""
        return document.candidate.commit.sha if document.outcome is Outcome.BUILT else ""


def _wanted(
    question: BisectQuestion, material: Material, search: Search, order: NextOrder
) -> Iterator[int]:
    """Give the places of commits that are worth a build now, the likeliest first."""
    if not search.document().observations and question.good not in material.built:
        # It is built after the candidate of the first job, so another machine may be done by then.
        yield _GOOD
    for commit in following(search, order):
        if not search.is_built(commit):
            yield commit
