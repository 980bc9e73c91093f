"""The words of what one step does not explain: further steps of a range, and steps back.

A bisect document comes in, sentences go out, plain and unescaped as all sentences are. Which steps
there are is found in `bisects.levels`.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from bisects.levels import off_levels, other_steps
from reports.numbers import loss_percent, percent, short

if TYPE_CHECKING:
    from bisects.document import BisectDocument
    from bisects.levels import OtherStep

#: Steps that are told of; who has found one of them asks again.
STEPS_MAX: Final = 3


def notes(document: BisectDocument) -> list[str]:
    """Return what a reader should know besides: steps that the answer does not name."""
    steps = other_steps(document)
    if steps:
        return [
            f"One step does not explain all of it: {_step(document, one)}."
            for one in steps[:STEPS_MAX]
        ]
    # A commit between two levels says that something else happens there, and not where.
    return [
        (
            f"One step does not explain all of it: {short(document.commits[one.commit].sha)} is "
            f"{amount(one.off)} than its place in the range says."
        )
        for one in off_levels(document)[:1]
    ]


def amount(effect: float) -> str:
    """Return a log ratio in words: `9.1 % slower`."""
    slower = effect < 0
    size = percent((1 if slower else -1) * loss_percent(effect))
    return f"{size} {'slower' if slower else 'faster'}"


def _step(document: BisectDocument, step: OtherStep) -> str:
    good, bad = (document.commits[place].sha for place in (step.after, step.up_to))
    command = shlex.join(
        ["forkwatch", "bisect", short(good), short(bad), "--workload", document.question.workload]
    )
    again = "a step" if document.effect is None else "another step"
    what = "a step back" if _is_back(document, step) else again
    # The effect of the answer is a mean over what lies behind it, on both sides of such a step.
    so_far = f", up to which it is {amount(step.before)} than the good end" if step.before else ""
    if step.up_to == step.after + 1:
        return f"the range holds {what} ({amount(step.size)}) at {short(bad)}{so_far}"
    where = f"after {short(good)}, up to {short(bad)}"
    return f"the range holds {what} ({amount(step.size)}) {where}{so_far}; searched by: {command}"


def _is_back(document: BisectDocument, step: OtherStep) -> bool:
    """Whether a step is in the other direction than the one before it that people look for."""
    if document.effect is not None:
        return step.size * document.effect < 0
    # Without an answer the first step is the one that was asked for.
    return step.size * other_steps(document)[0].size < 0
