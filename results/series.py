"""Series identity: which samples may be compared with which."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, order=True)
class SeriesKey:
    """Samples with equal keys may be compared; a change in any field starts a new series."""

    fork: str
    branch: str
    host_class: str
    variant: str
    config: str
    workload: str
    metric: str
    #: Name and digest of the dataset definition (rows, tables, engine data format).
    dataset: str
    #: Placement mode of server and client; moving between modes moves results several-fold.
    placement: str

    @property
    def id(self) -> str:
        """Stable identifier: 16 hex digits over all fields."""
        parts = (
            self.fork,
            self.branch,
            self.host_class,
            self.variant,
            self.config,
            self.workload,
            self.metric,
            self.dataset,
            self.placement,
        )
        text = "\x1f".join(parts)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
