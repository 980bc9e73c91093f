"""Ahead: which commits a search will probably want once the job under way has ended.

A search and the order that is being measured come in, places of commits go out, the likeliest
first. Who builds them meanwhile, and whether anybody does, is not known here.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bisects.search import NextOrder, Search

#: Log of the step where no measurement has shown one yet: the gate that most plans have. Which
#: commit follows hardly depends on it.
_STEP_USUAL: Final = math.log(0.95)


def following(search: Search, order: NextOrder) -> list[int]:
    """Return what will be wanted after an order, one commit for each way in which it may end.

    Either it has the level of after the change, or that of before it. Both are tried on copies of
    the search, the likelier one first; what a commit is wanted for twice is told once.
    """
    now = search.document()
    changed = math.fsum(one.posterior for one in now.commits[1 : order.commit + 1])
    step = _STEP_USUAL if now.effect is None else now.effect
    found: list[int] = []
    for _, level in sorted([(changed, step), (1 - changed, 0.0)], reverse=True):
        trial = copy.deepcopy(search)
        trial.take(search.expected(order, level))
        wanted = trial.next()
        if wanted is not None and wanted.commit not in (*found, order.commit):
            found.append(wanted.commit)
    return found
