"""An alert sink that writes one Markdown file per alert; for forks without a code host or chat."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from results.atomic import write_atomically

if TYPE_CHECKING:
    from pathlib import Path

    from service.core.model import Alert
    from workloads.plan import Notify

_log = logging.getLogger("forkwatch.alerts")


class FileAlerts:
    """Alert files in the service's home."""

    def __init__(self, home: Path) -> None:
        self._home = home.resolve()

    def raise_alert(self, alert: Alert, text: str, notify: Notify) -> str:
        """Write the alert's file and return its path; writing it again makes the same file."""
        folder = self._folder(notify)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{alert.id}.md"
        write_atomically(path, text)
        _log.info("alert %s: %s", alert.id, path)
        return str(path)

    def _folder(self, notify: Notify) -> Path:
        """Return the plan's folder where it lies in our home: a fork may not write elsewhere."""
        default = self._home / "alerts"
        if notify.alert_folder is None:
            return default
        wanted = (self._home / notify.alert_folder).resolve()
        if wanted.is_relative_to(self._home):
            return wanted
        _log.warning("the plan's alert_folder lies outside the home folder; using %s", default)
        return default
