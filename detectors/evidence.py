"""Student's t behind every change: an effect with its standard error comes in, a `Change` goes out.

It does not know where the variance came from, only how many degrees of freedom it is worth.
"""

from __future__ import annotations

import math

from scipy import special, stats

from detectors.change import Change, Interval
from detectors.errors import DataError

#: Power that the smallest detectable effect is stated for.
POWER = 0.80


def check_confidence(confidence: float) -> None:
    """Refuse a confidence outside (0, 1).

    Raises:
        DataError: it is outside.
    """
    if not 0 < confidence < 1:
        raise DataError(f"confidence is {confidence}; it has to lie inside (0, 1)")


def t_change(
    *,
    effect: float,
    variance: float,
    df: float,
    confidence: float,
    n_baseline: int,
    n_candidate: int,
    method: str,
    warnings: tuple[str, ...],
) -> Change:
    """The change with its t interval, two-sided p-value and smallest detectable effect."""
    assert variance > 0, "a variance of zero would be certainty"
    assert df > 0, "a t distribution needs degrees of freedom"
    error = math.sqrt(variance)
    critical = float(stats.t.isf((1 - confidence) / 2, df))
    # Power of a t test comes from the non-central t: the noncentrality at which the critical value
    # is passed with probability POWER. At two degrees of freedom the usual sum of two t quantiles
    # comes out 5 % too small, the sum of two normal ones 50 %. (Passing at the wrong end does not
    # count as having seen the effect.)
    noncentrality = float(special.nctdtrinc(df, 1 - POWER, critical))
    return Change(
        effect=effect,
        interval=Interval(
            low=effect - critical * error, high=effect + critical * error, confidence=confidence
        ),
        p_value=float(2 * stats.t.sf(abs(effect) / error, df)),
        detectable_effect=noncentrality * error,
        n_baseline=n_baseline,
        n_candidate=n_candidate,
        method=method,
        warnings=warnings,
    )


def no_evidence(
    *,
    effect: float,
    confidence: float,
    n_baseline: int,
    n_candidate: int,
    method: str,
    warnings: tuple[str, ...],
) -> Change:
    """The change of which nothing can be said but its point estimate."""
    return Change(
        effect=effect,
        interval=Interval(low=-math.inf, high=math.inf, confidence=confidence),
        p_value=1.0,
        detectable_effect=math.inf,
        n_baseline=n_baseline,
        n_candidate=n_candidate,
        method=method,
        warnings=warnings,
    )
