"""Plain lists of floats are read as arrays are, and what is wrong in them is refused as there."""

from __future__ import annotations

import math

import numpy as np
import pytest

from detectors.errors import DataError
from detectors.predictive import predict
from detectors.samples import read_starts
from detectors.sequential import SequentialPlan, look


@pytest.mark.parametrize(
    "run", [[[2.0, 2.1, 1.9], [2.2]], [[1e-9], [], [5e12, 3.5]], [(63_000.0,), (62_000.0, 1.0)]]
)
def test_a_run_of_lists_is_read_as_one_of_arrays(run):
    plain = read_starts(run, what="run")
    arrays = read_starts([np.array(start) for start in run], what="run")

    np.testing.assert_allclose(plain.levels, arrays.levels, rtol=1e-14)
    np.testing.assert_allclose(plain.scatter, arrays.scatter, rtol=1e-12, atol=1e-15)
    assert plain.counts.tolist() == arrays.counts.tolist()
    assert plain.counts.dtype == arrays.counts.dtype


def test_missing_slices_are_left_out_and_bad_ones_refused():
    assert read_starts([[1.0, math.nan], [2.0]], what="run").counts.tolist() == [1, 1]
    for bad in (0.0, -1.0, math.inf):
        with pytest.raises(DataError, match="start 1, slice 0"):
            read_starts([[1.0], [bad]], what="run")


def test_starts_that_were_read_already_give_the_same_change():
    history = [[[100.0, 101.0], [99.0]], [[102.0], [98.0]], [[], [97.0, 100.0]]]
    new = [[90.0, 91.0], [89.0]]

    def read(run):
        return read_starts(run, what="run").measured()

    assert predict([read(run) for run in history], read(new)) == predict(history, new)
    plan = SequentialPlan(gate=0.05, starts_max=3)
    assert look(read(history[0]), read(new), plan=plan) == look(history[0], new, plan=plan)
