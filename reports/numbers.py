"""Numbers as readers see them: one way to print a percentage, a ratio and a rate.

Floats come in, text goes out. Tables, sentences, pages and charts all print through here, so that
two of them never show the same number differently.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from detectors.change import Interval

#: Colours of the field's tables: red at and below the first, green at and above the second.
SLOWER_AT: Final = 0.95
FASTER_AT: Final = 1.05

#: Digits of a commit's hash in running text.
SHORT_SHA: Final = 8
#: Of hashes by SHA-1 and SHA-256.
_HASH_LENGTHS: Final = (40, 64)

NOT_KNOWN: Final = "\N{EN DASH}"


def short(sha: str) -> str:
    """Return the first digits of a commit's hash; a name that is no hash stays whole."""
    return sha[:SHORT_SHA] if len(sha) in _HASH_LENGTHS else sha


def ratio_of(log_ratio: float) -> float:
    """Return exp(log_ratio); infinity where the result does not fit a float."""
    try:
        return math.exp(log_ratio)
    except OverflowError:
        return math.inf


def loss_percent(log_ratio: float) -> float:
    """Return by how many percent the new level is below the old one; negative when above."""
    return (1 - ratio_of(log_ratio)) * 100


def detectable_percent(log_effect: float) -> float:
    """Return the smallest detectable effect as a loss in percent; 100 when nothing would show."""
    return loss_percent(-abs(log_effect))


def percent(value: float) -> str:
    """Return a percentage with one decimal, such as `9.1 %`."""
    return f"{plain(value)} %"


def plain(value: float) -> str:
    """Return a percentage without its sign: one decimal, and never `-0.0`."""
    if not math.isfinite(value):
        return "any" if value > 0 else "-any"
    return f"{round(value, 1) + 0.0:.1f}"


def percent_within(value: float) -> str:
    """Return a bound in percent, rounded up so that the claim stays true."""
    if not math.isfinite(value):
        return percent(value)
    return f"{math.ceil(round(value * 10, 6)) / 10:.1f} %"


def ratio(value: float | None) -> str:
    """Return a relative throughput with three decimals."""
    if value is None or math.isnan(value):
        return NOT_KNOWN
    return f"{value:.3f}" if math.isfinite(value) else "inf"


def ratio_interval(interval: Interval) -> str:
    """Return an interval of log ratios as relative throughput, such as `0.900 to 0.918`."""
    return f"{ratio(ratio_of(interval.low))} to {ratio(ratio_of(interval.high))}"


def tone(value: float | None) -> str:
    """Return `slower`, `faster` or nothing, by the field's colours.

    The ratio is rounded as it is printed, so that a reader who sees 0.950 sees it marked.
    """
    if value is None or math.isnan(value):
        return ""
    if round(value, 3) <= SLOWER_AT:
        return "slower"
    return "faster" if round(value, 3) >= FASTER_AT else ""


def mark(value: float | None) -> str:
    """Return the sign that stands for the colour where there is none."""
    return {"slower": "▼", "faster": "▲"}.get(tone(value), "")


def rate(value: float) -> str:
    """Return operations per second: whole above 100, else with enough digits to compare."""
    if value >= 100:  # noqa: PLR2004  below that, whole numbers hide differences of one percent
        return f"{value:,.0f}"
    return f"{value:.2f}"


def relative(candidate: float, baseline: float) -> str:
    """Return candidate over baseline by the field's rule: 0/0 is 1, x/0 is inf, else 2 decimals."""
    if baseline == 0:
        return "1" if candidate == 0 else "inf"
    return f"{candidate / baseline:.2f}"
