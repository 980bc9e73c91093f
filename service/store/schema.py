"""Every table of the store: importing this is what makes all of them known.

Tables lie in several files by what they are about; migrations and their tests want all of them.
"""

from __future__ import annotations

from service.store import (  # noqa: F401  being imported, they register their tables
    alert_tables,
    bisect_tables,
    delivery_tables,
    digest_tables,
    dispatch_tables,
    history_tables,
    host_tables,
    slack_tables,
    token_tables,
)
from service.store.tables import Row

METADATA = Row.metadata
