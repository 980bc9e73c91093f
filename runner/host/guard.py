"""Guard: a job's own view of its host: where it may run, and whether it may be believed.

Made once before a job's first load of its own. It looks at the canary before and after the
measuring and says what a quiet slice may show; it never sees a throughput.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runner import clock
from runner.disturbance import Limits
from runner.host import canary, fingerprint, profile
from runner.host.machine import Machine

if TYPE_CHECKING:
    from pathlib import Path

    from results.document import CanaryReading, Placement
    from runner.host.canary import Instrument, Moment
    from runner.host.profile import HostProfile
    from runner.settings import Home


@dataclass(kw_only=True)
class Guard:
    """Watches the host for one job."""

    #: The host's folder in the home.
    folder: Path
    instrument: Instrument
    #: Digest of the host's fingerprint.
    fingerprint: str
    #: What is different from the last fingerprint, in words.
    news: tuple[str, ...]
    profile: HostProfile | None
    readings: list[CanaryReading] = field(default_factory=list)

    def look(self, moment: Moment, placement: Placement) -> None:
        """Look at the canary on the processor that is measured.

        Raises:
            HostError: A program of the canary failed.
        """
        cpus = placement.server_cpus or (0,)
        self.readings += canary.look(
            self.folder,
            self.instrument,
            moment=moment,
            cpu=cpus[0],
            fingerprint=self.fingerprint,
            at=clock.now(),
        )

    def limits(self, mode: str, *, threads: int, writes_only: bool) -> Limits:
        """Return what a quiet slice may show on this host."""
        if self.profile is None:
            return Limits()
        kind = profile.kind_of(threads=threads, writes_only=writes_only)
        return self.profile.limits_for(mode, kind)

    def distrust(self) -> str:
        """Return why nothing that was measured may be judged; empty when it may."""
        return canary.unstable(self.readings)


def guard(home: Home, *, hardware: str = "") -> Guard:
    """Return the guard of a job on this machine.

    Args:
        home: Where the host's folder is.
        hardware: Why the processor's counters are missing, where a job wants them: it is said
            once, and not with each of its slices.

    Raises:
        HostError: The host's profile is not one that this version understands.
    """
    folder = home.folder("host")
    now = fingerprint.take(Machine(), home.root, at=clock.now())
    before = fingerprint.remember(folder, now)
    instrument = canary.Programs(folder)
    news = [
        f"the host changed: {one.name} was {one.before or 'nothing'}, is {one.after or 'nothing'}"
        for one in (fingerprint.changes(before, now) if before else ())
    ]
    return Guard(
        folder=folder,
        instrument=instrument,
        fingerprint=now.digest,
        news=tuple(text for text in (*news, instrument.missing(), hardware) if text),
        profile=profile.read(folder),
    )
