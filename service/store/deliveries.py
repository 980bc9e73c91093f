"""Queries about deliveries: webhooks that something was done about.

A delivery is known by its GUID, which GitHub keeps when it delivers again, and by the digest of its
body: the signature covers the body alone, so a replay may come under any GUID.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, or_, select
from sqlalchemy.exc import IntegrityError

from service.store.delivery_tables import DeliveryRow

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session

#: GitHub delivers again within three days at most; what is older is refused by its own time.
KEPT: Final = timedelta(days=7)


def is_known(session: Session, *, guid: str, digest: str) -> bool:
    """Whether something was done about this delivery, or about another with the same body."""
    query = select(DeliveryRow.guid).where(
        or_(DeliveryRow.guid == guid, DeliveryRow.digest == digest)
    )
    return session.scalars(query.limit(1)).first() is not None


def record_once(session: Session, *, guid: str, digest: str, event: str, at: datetime) -> bool:
    """Write a delivery down; return whether it is new. Old ones are forgotten on this occasion."""
    session.execute(delete(DeliveryRow).where(DeliveryRow.received_at < at - KEPT))
    if is_known(session, guid=guid, digest=digest):
        return False
    row = DeliveryRow(guid=guid, digest=digest, event=event, received_at=at)
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:
        # It came twice at the same moment; the other one was quicker.
        return False
    return True
