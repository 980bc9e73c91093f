from __future__ import annotations

import pytest

from runner import memory_room
from runner.errors import DatasetError
from workloads.plan import DatasetPlan

GB = 10**9


def test_data_that_fits_is_let_through():
    memory_room.check("small", DatasetPlan(), [8 * GB, 8 * GB], memory=20 * GB)


def test_data_that_does_not_fit_is_refused_with_the_arithmetic():
    with pytest.raises(DatasetError) as caught:
        memory_room.check("big", DatasetPlan(), [8 * GB, 9 * GB], memory=20 * GB)

    assert str(caught.value) == (
        "dataset 'big' takes 8.0 GB + 9.0 GB on the sides of this job, and 16.0 GB of this "
        "machine's 20.0 GB may hold data: the disk would be measured; load fewer rows, or set "
        "datasets.big.cached = false"
    )
    assert caught.value.stage == "dataset"


def test_who_wants_to_measure_the_disk_may():
    memory_room.check("big", DatasetPlan(cached=False), [80 * GB], memory=20 * GB)


def test_this_machine_has_some_memory():
    memory_room.check("small", DatasetPlan(), [1])
    with pytest.raises(DatasetError, match="GB may hold data"):
        memory_room.check("huge", DatasetPlan(), [10**15])


def test_the_refusal_says_how_the_size_comes_about():
    with pytest.raises(DatasetError) as caught:
        memory_room.check(
            "w", DatasetPlan(), [8 * GB], what="87 warehouses (55 MB + 87 x 90 MB)", memory=GB
        )

    assert str(caught.value).startswith(
        "dataset 'w', 87 warehouses (55 MB + 87 x 90 MB), takes 8.0 GB on the sides of this job"
    )
