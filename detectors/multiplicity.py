"""Many tests at once: p-values or e-values of many tests come in, adjusted ones go out.

Over the tests of one commit: Benjamini & Hochberg (1995), Benjamini & Yekutieli (2001), and e-BH
(Wang & Ramdas 2022). Over a stream of commits: LORD++ (Ramdas et al. 2017), and what a constant
level promises. Which of them judges commits, and why, is in docs/statistics.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from detectors.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

#: Normalises LORD's sequence of levels to a sum of 1 (Javanmard & Montanari 2018, equation 31).
GAMMA_SCALE = 0.07720838
#: Share of the rate that LORD++ may spend before its first discovery; one half in Ramdas et al.
FIRST_WEALTH_SHARE = 0.5


class Method(StrEnum):
    """How the tests of one family may depend on each other."""

    #: False discovery rate under independence or positive dependence (PRDS), such as one common
    #: noise behind all tests.
    BENJAMINI_HOCHBERG = "benjamini-hochberg"
    #: The same under any dependence, for a factor of 1 + 1/2 + ... + 1/n.
    BENJAMINI_YEKUTIELI = "benjamini-yekutieli"
    #: The same under any dependence and for nothing, but of e-values.
    E_BENJAMINI_HOCHBERG = "e-benjamini-hochberg"


@dataclass(frozen=True, kw_only=True)
class Adjusted:
    """Tests of one family, each with the smallest rate of false discoveries that finds it."""

    #: In the order of the input; at most 1.
    adjusted: tuple[float, ...]
    method: Method
    warnings: tuple[str, ...] = ()

    @property
    def n_tests(self) -> int:
        """How many tests the rate is controlled over."""
        return len(self.adjusted)

    def found(self, rate: float) -> tuple[int, ...]:
        """Positions of the tests that are found when a share `rate` of the finds may be false.

        Where nothing at all has changed, this is also the chance of any find.
        """
        _check_rate(rate)
        return tuple(place for place, value in enumerate(self.adjusted) if value <= rate)


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Tests that came one after the other, each judged before the next was seen."""

    #: The level that each test was judged at.
    levels: tuple[float, ...]
    #: Positions of the tests that were found.
    found: tuple[int, ...]
    #: Sum of the levels over the number of finds: an upper estimate of the share of false ones.
    false_share: float
    warnings: tuple[str, ...] = ()


def adjust(p_values: ArrayLike, *, method: Method = Method.BENJAMINI_HOCHBERG) -> Adjusted:
    """Adjust the p-values of one family.

    Args:
        p_values: One-dimensional; may be empty.
        method: Benjamini-Hochberg or Benjamini-Yekutieli.

    Raises:
        DataError: A p-value is NaN or outside [0, 1], or the method is for e-values.
    """
    values = _p_values(p_values)
    if method is Method.E_BENJAMINI_HOCHBERG:
        raise DataError("e-Benjamini-Hochberg takes e-values: call adjust_e_values")
    factor = 1.0
    if method is Method.BENJAMINI_YEKUTIELI:
        factor = float(np.sum(1.0 / np.arange(1, values.size + 1)))
    return Adjusted(
        adjusted=_stepped_up(values, factor=factor), method=method, warnings=_empty(values)
    )


def adjust_e_values(e_values: ArrayLike) -> Adjusted:
    """Adjust the e-values of one family; an e-value has a mean of at most 1 without a change.

    Raises:
        DataError: An e-value is NaN or negative.
    """
    values = _one_dimension(e_values, what="e-values")
    bad = np.flatnonzero(~(values >= 0))
    if bad.size:
        raise DataError(f"e-value {bad[0]} is {values[bad[0]]}; it has to be 0 or more")
    with np.errstate(divide="ignore"):
        inverse = 1.0 / values
    return Adjusted(
        adjusted=_stepped_up(inverse, factor=1.0),
        method=Method.E_BENJAMINI_HOCHBERG,
        warnings=_empty(values),
    )


def at_level(p_values: ArrayLike, *, level: float) -> Stream:
    """Judge a stream at one constant level.

    Without a change, `level` is how often a test is found, however long the stream and however its
    tests depend on each other. How many of the finds are false depends on how often there is
    something to find; `false_share` says what that came to.

    Raises:
        DataError: A p-value is NaN or outside [0, 1], or the level outside (0, 1).
    """
    _check_rate(level)
    values = _p_values(p_values)
    found = np.flatnonzero(values <= level)
    return _stream(np.full(values.size, level), found, values)


def lord(p_values: ArrayLike, *, rate: float) -> Stream:
    """Judge a stream so that at most a share `rate` of the finds is false, by LORD++.

    Every find pays for later tests, and without finds the level falls towards zero. Holds where a
    test without a change is valid whatever was found before it.

    Raises:
        DataError: A p-value is NaN or outside [0, 1], or the rate outside (0, 1).
    """
    _check_rate(rate)
    values = _p_values(p_values)
    steps = np.arange(1, values.size + 1, dtype=np.float64)
    gamma = GAMMA_SCALE * np.log(np.maximum(steps, 2)) / (steps * np.exp(np.sqrt(np.log(steps))))
    first = FIRST_WEALTH_SHARE * rate
    levels = first * gamma
    found: list[int] = []
    for place, value in enumerate(values):
        if value <= levels[place]:
            # The first find pays back what was spent on the way to it.
            earned = rate if found else rate - first
            levels[place + 1 :] += earned * gamma[: values.size - place - 1]
            found.append(place)
    return _stream(levels, np.array(found, dtype=np.int64), values)


def _stepped_up(values: NDArray[np.float64], *, factor: float) -> tuple[float, ...]:
    """Benjamini & Hochberg's step-up procedure, as adjusted values."""
    order = np.argsort(values, kind="stable")
    ranks = np.arange(1, values.size + 1)
    # The factor comes first: it is at least 1, so that rounding never lets a value shrink.
    stepped = values[order] * (values.size * factor / ranks)
    # The k-th smallest is found as soon as a larger one is.
    stepped = np.minimum(np.minimum.accumulate(stepped[::-1])[::-1], 1.0)
    adjusted = np.empty_like(stepped)
    adjusted[order] = stepped
    return tuple(float(value) for value in adjusted)


def _stream(
    levels: NDArray[np.float64], found: NDArray[np.int64], values: NDArray[np.float64]
) -> Stream:
    return Stream(
        levels=tuple(float(level) for level in levels),
        found=tuple(int(place) for place in found),
        false_share=min(1.0, float(np.sum(levels)) / max(1, found.size)),
        warnings=_empty(values),
    )


def _one_dimension(values: ArrayLike, *, what: str) -> NDArray[np.float64]:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} have to be numbers ({error})") from error
    if array.ndim != 1:
        raise DataError(f"{what} have {array.ndim} dimensions; they have to have 1")
    return array


def _p_values(values: ArrayLike) -> NDArray[np.float64]:
    array = _one_dimension(values, what="p-values")
    bad = np.flatnonzero(~((array >= 0) & (array <= 1)))
    if bad.size:
        raise DataError(
            f"p-value {bad[0]} is {array[bad[0]]}; it has to lie in [0, 1]: leave out tests that "
            f"were not made"
        )
    return array


def _check_rate(rate: float) -> None:
    if not (math.isfinite(rate) and 0 < rate < 1):
        raise DataError(f"a rate of {rate} makes no promise; it has to lie inside (0, 1)")


def _empty(values: NDArray[np.float64]) -> tuple[str, ...]:
    return () if values.size else ("there is no test: nothing was adjusted",)
