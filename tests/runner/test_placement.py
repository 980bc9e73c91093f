from __future__ import annotations

import pytest

from runner.placement import place


@pytest.mark.parametrize(
    ("mode", "cpus", "server", "client"),
    [
        ("shared-core", [0, 1], (1,), (1,)),
        ("shared-core", [0, 1, 2, 3], (3,), (3,)),
        # A single processor leaves nothing to keep free.
        ("shared-core", [0], (0,), (0,)),
        ("disjoint", [0], (0,), (0,)),
        # Two processors: the server takes the first, there is no other.
        ("disjoint", [0, 1], (0,), (1,)),
        ("disjoint", [0, 1, 2, 3], (1, 2), (3,)),
        ("unpinned", [0, 1, 2, 3], (), ()),
    ],
)
def test_where_server_and_client_go(mode, cpus, server, client):
    placed = place(mode, cpus=cpus)

    assert (placed.server_cpus, placed.client_cpus) == (server, client)


def test_the_recorded_mode_is_what_was_done():
    assert place("disjoint", cpus=[0]).mode == "shared-core"
    assert place("disjoint", cpus=[0, 1]).mode == "disjoint"
