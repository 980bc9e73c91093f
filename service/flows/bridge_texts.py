"""The words about series that begin anew, for log, pages and digest alike.

A bridge and what it showed come in, sentences go out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reports.numbers import short
from service.core.bridges import BridgeState
from service.store import bridges

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from service.core.bridges import Bridge, Relation

#: Workloads that a sentence names; a suite has dozens.
NAMED_MAX: Final = 6


def began_words(bridge: Bridge) -> str:
    """Return what is said when series begin anew."""
    how = "under both, side by side" if bridge.paired else "once more as it is now"
    return (
        f"{_named(bridge)} begin anew at {short(bridge.sha)}: {bridge.why}; "
        f"{short(bridge.old_sha)}, the last commit before, is measured {how} to relate the two"
    )


def related_words(bridge: Bridge, relations: Sequence[Relation]) -> str:
    """Return what is said when old and new are related, workload by workload."""
    shown = "; ".join(one.words for one in relations[:NAMED_MAX])
    more = f"; and {len(relations) - NAMED_MAX} more" if len(relations) > NAMED_MAX else ""
    return f"{short(bridge.old_sha)} was measured under both, new over old: {shown}{more}"


def bridge_line(bridge: Bridge, relations: Sequence[Relation], *, workload: str = "") -> str:
    """Return one bridge as a line: what changed, and how new relates to old if that is known.

    Args:
        bridge: Which.
        relations: What it showed.
        workload: The one that a page is about; all where empty.
    """
    wanted = [one for one in relations if workload in {"", one.workload}]
    names = workload or _named(bridge)
    began = f"{names}: begins anew at {short(bridge.sha)}, {bridge.why}."
    if bridge.state is BridgeState.FAILED:
        return f"{began} Old and new are not related: {bridge.said}."
    if bridge.state is not BridgeState.RELATED:
        return f"{began} {short(bridge.old_sha)} is still to be measured once more to relate them."
    if not wanted:
        return f"{began} Old and new are not related."
    return f"{began} {_sentence(related_words(bridge, wanted))} Nothing is rescaled by it."


def lines_between(session: Session, fork: str, since: datetime, until: datetime) -> list[str]:
    """Return a line for each bridge that began in a time, oldest first, as a digest says them."""
    return [
        bridge_line(bridge, bridges.relations_of(session, bridge.id))
        for bridge in bridges.began_between(session, fork, since, until)
    ]


def _named(bridge: Bridge) -> str:
    names = [joint.workload for joint in bridge.joints]
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return f"{', '.join(names[:NAMED_MAX])}{more}"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
