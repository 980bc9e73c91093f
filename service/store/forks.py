"""Queries about forks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from service.core.model import Fork
from service.store.tables import ForkRow

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session


def ensure(session: Session, name: str, *, branch: str, at: datetime) -> Fork:
    """Return the fork, written down now if it is new; its branch follows the plan."""
    row = session.get(ForkRow, name)
    if row is None:
        row = ForkRow(name=name, branch=branch, first_seen_at=at)
        session.add(row)
    row.branch = branch
    session.flush()
    return _value(row)


def find(session: Session, name: str) -> Fork | None:
    """Return the fork of that name, if there is one."""
    row = session.get(ForkRow, name)
    return _value(row) if row else None


def everything(session: Session) -> list[Fork]:
    """Return all forks by name; an operator adds them one by one, so there are few."""
    return [_value(row) for row in session.scalars(select(ForkRow).order_by(ForkRow.name))]


def _value(row: ForkRow) -> Fork:
    return Fork(name=row.name, branch=row.branch, first_seen_at=row.first_seen_at)
