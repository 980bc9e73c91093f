"""The table of weekly digests, explained in docs/schema.md."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  SQLAlchemy reads the annotations
from typing import Any

from sqlalchemy import ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from service.store.tables import NAME_LENGTH, WORD_LENGTH, Row


class DigestRow(Row):
    """One digest for each fork and week: the key is what keeps it from being made twice."""

    __tablename__ = "digests"

    fork: Mapped[str] = mapped_column(ForeignKey("forks.name"), primary_key=True)
    #: Such as 2026-W47; sorts as weeks do.
    week: Mapped[str] = mapped_column(String(WORD_LENGTH), primary_key=True)
    zone: Mapped[str] = mapped_column(String(NAME_LENGTH))
    headline: Mapped[str] = mapped_column(Text)
    text: Mapped[str] = mapped_column(Text)
    document: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    sent_at: Mapped[datetime | None]
    sent_to: Mapped[str] = mapped_column(Text)
