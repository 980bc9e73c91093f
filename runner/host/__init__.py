"""Host: what the machine is, which of its settings make results untrustworthy, and its own past.

Rooms: `machine` (the files everything is read from), `knobs` (what can be set), `tuning` (set and
restored), `checks` and `facts` (what is seen), `topology`, `fingerprint`, `canary` with `history`,
and `profile` with `calibration` (what was measured of the machine itself). Nothing here knows a
fork, a commit or a verdict.
"""

from __future__ import annotations

from runner.host.checks import Check, checks, quiet_checks
from runner.host.facts import describe

__all__ = ["Check", "checks", "describe", "quiet_checks"]
