"""What pages say about the past being measured: backfills, and series that begin anew.

A session comes in, sentences go out; nothing is decided here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.flows.bridge_texts import bridge_line
from service.store import backfills, bridges

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def fork_notes(session: Session, fork: str) -> tuple[str, ...]:
    """Return a line for what is being measured of a fork's past; nothing where nothing is."""
    filling = [
        backfills.progress(session, backfill).words
        for backfill in backfills.under_way(session, fork)
    ]
    joining = [bridge_line(bridge, ()) for bridge in bridges.unfinished(session, fork)]
    return (*filling, *joining)


def relation_lines(session: Session, fork: str, workload: str) -> tuple[str, ...]:
    """Return a line for each time that a series of a workload began anew, newest first."""
    return tuple(
        bridge_line(bridge, bridges.relations_of(session, bridge.id), workload=workload)
        for bridge in bridges.newest(session, fork)
        if any(joint.workload == workload for joint in bridge.joints)
    )
