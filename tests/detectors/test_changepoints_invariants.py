"""What must not matter to change points: the unit, the direction, and where commits are missing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detectors.changepoints import examine, find_changes
from detectors.synthetic import Gaussian, Spikes, Student, history

seeds = st.integers(min_value=0, max_value=2**32 - 1)


def _values(seed: int) -> np.ndarray:
    """A history with zero to three changes, heavy tails and spikes."""
    rng = np.random.default_rng(seed)
    steps = {int(at): float(rng.normal(0, 0.08)) for at in rng.integers(12, 148, rng.integers(4))}
    kinds = (Gaussian(sd=0.02), Student(sd=0.02), Gaussian(sd=0.02) + Spikes())
    return history(rng, 150, noise=kinds[int(rng.integers(3))], steps=steps)


@settings(max_examples=40, deadline=None)
@given(seed=seeds, factor=st.floats(min_value=1e-6, max_value=1e6))
def test_the_unit_does_not_matter(seed: int, factor: float) -> None:
    values = _values(seed)

    plain, scaled = find_changes(values), find_changes(values * factor)

    assert [change.index for change in scaled] == [change.index for change in plain]
    for before, after in zip(plain, scaled, strict=True):
        assert after.effect == pytest.approx(before.effect, abs=1e-9)
        assert after.p_value == pytest.approx(before.p_value, rel=1e-6)


@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_time_instead_of_throughput_flips_the_effects(seed: int) -> None:
    values = _values(seed)

    plain, inverse = examine(values), examine(1 / values)

    assert [change.index for change in inverse.changes] == [c.index for c in plain.changes]
    for one, other in zip(plain.changes, inverse.changes, strict=True):
        assert other.effect == pytest.approx(-one.effect, abs=1e-9)
        assert other.interval.low == pytest.approx(-one.interval.high, abs=1e-9)
        assert other.p_value == pytest.approx(one.p_value, rel=1e-6)
    assert inverse.spikes == plain.spikes


@settings(max_examples=40, deadline=None)
@given(seed=seeds, gaps=st.lists(st.integers(min_value=0, max_value=150), max_size=20))
def test_missing_commits_shift_indices_only(seed: int, gaps: list[int]) -> None:
    values = _values(seed)
    holes = np.insert(values, gaps, np.nan)
    places = np.flatnonzero(~np.isnan(holes))

    plain, holey = find_changes(values), find_changes(holes)

    assert [change.index for change in holey] == [int(places[c.index or 0]) for c in plain]
    assert [change.effect for change in holey] == [change.effect for change in plain]


@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_what_is_reported_is_ordered_and_consistent(seed: int) -> None:
    values = _values(seed)

    found = examine(values)

    places = [change.index or 0 for change in found.changes]
    assert places == sorted(set(places))
    assert list(found.changes) == find_changes(values)
    for change in found.changes:
        assert 0 < (change.index or 0) < values.size
        assert change.interval.low <= change.effect <= change.interval.high
        assert 0 <= change.p_value <= 1
