"""Words for a commit whose own run and whose pair point in opposite directions.

Two verdicts on one workload come in, words that tell both come out. The pair decides
(docs/decisions/0018-the-pair-decides.md); what is said here explains to whoever looks at a chart
why the verdict is not what the chart shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.numbers import loss_percent, percent, short
from service.flows.levels import CHANGES

if TYPE_CHECKING:
    from detectors.verdict import Verdict


def at_odds(own: Verdict, pair: Verdict, *, beside: str = "") -> str:
    """Return what both said where a suspicion and a change go opposite ways, and else nothing.

    Args:
        own: The verdict of the commit's own run, which was suspicious.
        pair: The verdict of the paired run; of a throughput, like everything that is gated.
        beside: The commit on the other side of the pair.
    """
    if pair.decision not in CHANGES or own.change.effect * pair.change.effect >= 0:
        return ""
    above, slower = own.change.effect > 0, pair.change.effect < 0
    return (
        f"its own run was {_size(own.change.effect)} {'above' if above else 'below'} the baseline, "
        f"and side by side with {short(beside) or 'its baseline'} it is "
        f"{_size(pair.change.effect)} {'slower' if slower else 'faster'}"
    )


def _size(effect: float) -> str:
    return percent(abs(loss_percent(effect)))
