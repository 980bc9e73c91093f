"""Which revision of the schema a database has, and which is the newest; nothing is changed."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from service.store.migrate import script_folder

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection


def present_revision(connection: Connection) -> str | None:
    """Return the revision that a database has, None where it has no tables of ours."""
    heads = MigrationContext.configure(connection).get_current_heads()
    return ",".join(sorted(heads)) or None


@cache
def newest_revision() -> str:
    """Return the revision that this version needs."""
    head = ScriptDirectory(str(script_folder())).get_current_head()
    assert head is not None, "there is a migration"
    return head


@cache
def known_revisions() -> frozenset[str]:
    """Return the revisions that this version can bring to the newest."""
    scripts = ScriptDirectory(str(script_folder())).walk_revisions()
    return frozenset(script.revision for script in scripts)
