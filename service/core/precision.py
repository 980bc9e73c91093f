"""Precision: how many of the alarms that people judged were true.

Counts come in, a share with its interval goes out. It knows nothing of how people said so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

#: Two-sided 95 % of the normal distribution.
_Z: Final = 1.959963984540054


@dataclass(frozen=True, kw_only=True)
class PrecisionFigure:
    """What people said about the alarms of one workload, host class and detector version."""

    fork: str
    workload: str
    host_class: str
    #: Name and version of the rule that found the changes.
    method: str
    #: Version of the rules of the two stages around it.
    rules: str
    true_alarms: int
    false_alarms: int
    #: Alarms that nobody has called true or false.
    not_judged: int
    #: True alarms among those judged, between 0 and 1; None where none were.
    precision: float | None
    #: 95 % interval of it, (0, 1) where none were judged.
    low: float
    high: float


def share_interval(count: int, of: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share.

    It holds for few counts and for shares near 0 or 1, where alarms are: Brown, Cai and DasGupta
    (2001), "Interval Estimation for a Binomial Proportion", recommend it up to 40 counts.
    """
    if of == 0:
        return 0.0, 1.0
    share = count / of
    spread = _Z * math.sqrt(share * (1 - share) / of + _Z**2 / (4 * of**2))
    middle = share + _Z**2 / (2 * of)
    scale = 1 + _Z**2 / of
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)
