from __future__ import annotations

from collections import Counter

from results.slice import SideName
from runner.measure import slice_order

BOTH = [SideName.BASELINE, SideName.CANDIDATE]


def letters(seed: int, slices: int) -> str:
    order = slice_order(BOTH, slices, seed=seed)
    return "".join("A" if side is SideName.BASELINE else "B" for _, side in order)


def test_two_sides_alternate_in_balanced_order():
    assert {letters(seed, 2) for seed in range(50)} == {"ABBA", "BAAB"}
    assert {letters(seed, 4) for seed in range(50)} == {"ABBAABBA", "BAABBAAB"}


def test_a_linear_drift_cancels():
    # Slices at times 0, 1, 2, ...: the mean time of both sides is the same.
    for seed in range(20):
        text = letters(seed, 4)
        times = {side: [at for at, one in enumerate(text) if one == side] for side in "AB"}
        assert sum(times["A"]) == sum(times["B"])


def test_the_seed_decides_who_goes_first_fairly_and_repeatably():
    firsts = Counter(letters(seed, 2)[0] for seed in range(400))

    # 400 fair coins: 200 +- 10; four standard deviations.
    assert 160 <= firsts["A"] <= 240
    assert letters(11, 2) == letters(11, 2)


def test_both_sides_of_a_pair_carry_its_number():
    order = slice_order(BOTH, 3, seed=1)

    assert [pair for pair, _ in order] == [0, 0, 1, 1, 2, 2]


def test_one_side_is_simply_repeated():
    assert slice_order([SideName.CANDIDATE], 2, seed=5) == [
        (0, SideName.CANDIDATE),
        (1, SideName.CANDIDATE),
    ]
