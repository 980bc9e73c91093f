"""The step that follows a culprit which is a merge: what it merged is a bisect of its own.

A bisect that is over comes in; where it names a merge and minutes are left, another one is written
down: the first parent of the merge is good, the merge is bad, what it merged lies between. It
belongs to the same alert, and whoever asked hears of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from bisects.commits import RANGE_COMMITS_MAX
from bisects.levels import noise_of
from service.core.bisections import BisectState
from service.flows.bisect_material import gather
from service.store import bisects
from workloads.plan import parse_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bisects.commits import RangeCommit
    from bisects.document import BisectDocument
    from service.core.bisections import Bisect, Material
    from service.core.clock import Clock
    from service.core.ports import CodeHost
    from service.store.database import Database

#: Minutes of the budget that have to be left: about what a measurement takes without a build.
LEFT_MIN: Final = 1.0


@dataclass(frozen=True, kw_only=True)
class BisectMerges:
    """The step, with everything it touches."""

    database: Database
    clock: Clock
    code_host: CodeHost

    def follow(self, bisect_id: str) -> str | None:
        """Write down the bisect of what a culprit merged; return it, None where there is none.

        Raises:
            CodeHostError: The repository cannot be read now.
        """
        with self.database.reading() as session:
            bisect = bisects.find(session, bisect_id)
            found = bisects.document(session, bisect_id)
            material = bisects.material(session, bisect_id)
        if bisect is None or bisect.state is not BisectState.OVER or found is None:
            return None
        left = bisect.question.budget_minutes - found.minutes_spent
        if found.culprit is None or left < LEFT_MIN:
            return None
        merge = found.commits[found.culprit[1]].sha
        commits = self.code_host.merged_commits(merge, limit=RANGE_COMMITS_MAX)
        if not commits or [one.sha for one in commits] == [one.sha for one in found.commits]:
            # Where this is what was searched, the merge itself is the answer.
            return None
        return self._write_down(bisect, found, material, commits, budget_minutes=left)

    def _write_down(
        self,
        bisect: Bisect,
        found: BisectDocument,
        material: Material,
        commits: Sequence[RangeCommit],
        *,
        budget_minutes: float,
    ) -> str:
        question = bisect.question.model_copy(
            update={
                "good": commits[0].sha,
                "bad": commits[-1].sha,
                "budget_minutes": budget_minutes,
            }
        )
        plan, text = parse_plan(material.plan_text), material.plan_text
        sd, df = noise_of(found)
        with self.database.reading() as session:
            known = gather(session, question, commits, plan=plan, plan_text=text, alert=None)
        # Somebody looked at what the branch became, and not at each commit on the way there.
        known = replace(known, trusted=False, noise_sd=sd or None, noise_df=float(df))
        inner = replace(
            bisect,
            id=question.id,
            question=question,
            state=BisectState.WAITING,
            commits=len(commits),
            said="",
            created_at=self.clock.now(),
            started_at=None,
            finished_at=None,
        )
        with self.database.writing() as session:
            return bisects.create_once(session, inner, known)[0].id
