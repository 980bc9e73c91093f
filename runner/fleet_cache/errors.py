"""Errors of the fleet's cache; none of them leaves this room, they become warnings.

FleetCacheError
├── AwayError        the place does not answer, or not in time: nothing more is asked of it
└── DamagedPackError what lies there is not what its name says: it is not used, and made again
"""

from __future__ import annotations

from runner.errors import RunnerError


class FleetCacheError(RunnerError):
    """Something is wrong with the fleet's cache."""


class AwayError(FleetCacheError):
    """The place does not answer, or not in time."""


class DamagedPackError(FleetCacheError):
    """What lies there is not what its name says."""
