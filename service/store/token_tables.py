"""The table of tokens, explained in docs/schema.md: names, hashes and scopes, never a secret.

Only its query module and Alembic read this.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  SQLAlchemy reads the annotations
from typing import Any, Final

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from service.store.tables import NAME_LENGTH, Row

ID_LENGTH: Final = 16
HASH_LENGTH: Final = 64


class TokenRow(Row):
    """Tokens of people and programs, good or not."""

    __tablename__ = "tokens"

    id: Mapped[str] = mapped_column(String(ID_LENGTH), primary_key=True)
    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    secret_hash: Mapped[str] = mapped_column(String(HASH_LENGTH))
    scopes: Mapped[list[Any]]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
