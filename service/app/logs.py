"""The service's log: which lines it writes to stderr, in which form, and without which secrets.

Settings come in; the handlers that the door opened, and those of DBOS, write as they say.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from results.log_lines import opened_handlers, write_lines
from service.core.dispatch_settings import load_dispatch_settings
from service.core.settings import misspelt

if TYPE_CHECKING:
    from service.core.settings import Settings

_log = logging.getLogger("forkwatch.settings")

#: DBOS keeps its lines to a handler of its own, and makes one in a form of its own where its logger
#: has none.
FLOWS_LOGGER: Final = "dbos"


def open_log(settings: Settings) -> None:
    """Write the log as the settings say, and say in it which variables are almost settings."""
    flows = logging.getLogger(FLOWS_LOGGER)
    if not flows.handlers:
        handler = logging.StreamHandler()
        handler.setLevel(logging.WARNING)
        flows.addHandler(handler)
        flows.propagate = False
    write_lines(
        [*opened_handlers(), *flows.handlers],
        settings.log_format,
        secrets=(*settings.secret_values, *load_dispatch_settings().secret_values),
    )
    for line in misspelt():
        _log.warning("%s", line)
