"""A tracker in memory: one issue for each alert, and what was said in it, once for each key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from service.core.errors import CodeHostError

if TYPE_CHECKING:
    from service.core.model import Alert
    from workloads.plan import Notify


@dataclass
class MemoryIssue:
    """An issue."""

    open: bool = True
    #: Of a closed one: somebody takes the loss as intended, or calls it none.
    intended: bool = False
    said: dict[str, str] = field(default_factory=dict)


class MemoryTracker:
    """Issues by alert."""

    def __init__(self) -> None:
        self.issues: dict[str, MemoryIssue] = {}
        self.calls = 0
        self.broken = False

    def raise_alert(self, alert: Alert, text: str, notify: Notify) -> str:
        self.issues.setdefault(alert.id, MemoryIssue())
        return f"memory:{alert.id}"

    def close_alert(
        self, alert: Alert, text: str, *, key: str, intended: bool = False
    ) -> str | None:
        issue = self._issue(alert)
        issue.said.setdefault(f"closed:{key}", text)
        issue.open, issue.intended = False, intended
        return f"memory:{alert.id}"

    def reopen_alert(self, alert: Alert, text: str, *, key: str) -> str | None:
        issue = self._issue(alert)
        issue.said.setdefault(f"reopened:{key}", text)
        issue.open = True
        return f"memory:{alert.id}"

    def _issue(self, alert: Alert) -> MemoryIssue:
        self.calls += 1
        if self.broken:
            raise CodeHostError("the tracker is away")
        return self.issues.setdefault(alert.id, MemoryIssue())
