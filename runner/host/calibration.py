"""Calibration: which placement repeats best here, for each kind of workload.

An instrument and placements come in, a profile goes out. The placements take turns, so that a burst
of others' load meets all of them; what a quiet slice shows of disturbance becomes the limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
from scipy import stats

from runner import disturbance, placement
from runner.disturbance import Limits
from runner.host import topology
from runner.host.profile import HostProfile, ModeFigure, limits_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime

    from results.document import Placement
    from runner.host.machine import Machine
    from runner.host.profile import Kind

KINDS: Final[tuple[Kind, ...]] = ("single-client", "several-clients", "io")
#: Modes to try for each kind, the preferred one first: another is taken only when it is shown to
#: be quieter. One shared core for several clients measures the scheduler, not the server.
MODES: Final[Mapping[Kind, tuple[str, ...]]] = {
    "single-client": ("disjoint", "disjoint-awake", "shared-core"),
    "several-clients": ("disjoint", "disjoint-awake"),
    "io": ("disjoint", "disjoint-awake"),
}
#: Chance of preferring another mode that is no quieter.
ALPHA: Final = 0.05
#: A limit lies so many robust standard deviations above the median of quiet slices, the cut that
#: detectors.noise uses for runs, and never below a floor: less disturbance than that cannot move
#: throughput by more than the usual gate of 5 %.
LIMIT_SDS: Final = 6.0
FLOORS: Final[Mapping[str, float]] = {
    "steal": 2.0,
    "foreign": 5.0,
    "wait": 5.0,
    "pressure_cpu": 10.0,
    "pressure_io": 5.0,
    "pressure_memory": 1.0,
}
#: Above it an account is the workload's own affair, such as waiting on one shared core, and says
#: nothing about others.
OWN_AFFAIR_PERCENT: Final = 50.0
#: A slice with others' load in it is taken again so often, or a burst would decide for a mode.
RETAKES_MAX: Final = 1
#: Quiet slices that limits are learnt from, at least.
QUIET_MIN: Final = 3
_MAD_TO_SD: Final = 1.4826
#: Keeps a division by the spread of equal numbers finite.
_VARIANCE_MIN: Final = 1e-18


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One slice: its throughput, and what else went on."""

    ops_s: float
    shares: Mapping[str, float]

    @property
    def disturbed(self) -> str:
        """Why others' load was in it; empty where none was."""
        return disturbance.reason(self.shares, Limits())


class Instrument(Protocol):
    """What runs a slice of a kind of workload: a ping-pong, a server, or numbers in a test."""

    def name(self, kind: Kind) -> str:
        """Return what is run for a kind."""
        ...

    def warm_up(self, kind: Kind, placed: Placement) -> None:
        """Run a little that is not counted."""
        ...

    def sample(self, kind: Kind, placed: Placement, spinners: Sequence[int]) -> Sample:
        """Return one slice."""
        ...


class Keep(Protocol):
    """What keeps the processors of a placement awake, as `placement.kept` does."""

    def __call__(
        self, placement: Placement, machine: Machine | None
    ) -> AbstractContextManager[tuple[int, ...]]:
        """Give the process ids of the spinners for as long as the context lasts."""
        ...


def calibrate(
    instrument: Instrument,
    *,
    machine: Machine,
    cpus: Sequence[int],
    rounds: int,
    fingerprint: str,
    at: datetime,
    say: Callable[[str], None] = lambda _: None,
    keep: Keep = placement.kept,
) -> HostProfile:
    """Measure every mode for every kind and return the profile of the host.

    Args:
        instrument: What runs a slice.
        machine: The host.
        cpus: Processors that may be used.
        rounds: Slices of each mode and kind.
        fingerprint: Digest of the host's fingerprint.
        at: The time.
        say: Told what is being measured.
        keep: Keeps processors awake where the mode says so.
    """
    avoid = topology.interrupt_cpus(machine)
    layout = topology.read(machine)
    figures: list[ModeFigure] = []
    limits: dict[str, Limits] = {}
    modes: dict[str, str] = {}
    for kind in KINDS:
        placed = {
            found.mode: found
            for mode in MODES[kind]
            for found in [placement.place(mode, cpus=cpus, layout=layout, avoid=avoid)]
        }
        say(f"{kind}: {instrument.name(kind)} as {', '.join(placed)}, {rounds} rounds")
        samples = _alternate(instrument, kind, placed, rounds=rounds, machine=machine, keep=keep)
        for mode, found in samples.items():
            figures.append(_figure(mode, kind, instrument.name(kind), found))
            quiet = [sample.shares for sample in found if not sample.disturbed]
            if len(quiet) >= QUIET_MIN:
                limits[limits_key(mode, kind)] = limits_from(quiet)
        modes[kind] = quietest({mode: _ops(found) for mode, found in samples.items()})
    return HostProfile(
        made_at=at,
        fingerprint=fingerprint,
        modes=modes,
        figures=tuple(figures),
        limits=limits,
        avoid=avoid,
    )


def quietest(samples: Mapping[str, Sequence[float]]) -> str:
    """Return the mode whose throughput repeats best; an earlier one unless that is shown wrong.

    Variances of logs are compared, so that faster modes have no advantage. An F test decides,
    because the spread of five slices is itself uncertain by a third, and the choice should be the
    same tomorrow.
    """
    best, *others = samples
    for mode in others:
        ours, theirs = (float(np.var(np.log(samples[name]), ddof=1)) for name in (mode, best))
        degrees = len(samples[mode]) - 1, len(samples[best]) - 1
        if stats.f.cdf((ours + _VARIANCE_MIN) / (theirs + _VARIANCE_MIN), *degrees) < ALPHA:
            best = mode
    return best


def limits_from(slices: Sequence[Mapping[str, float]]) -> Limits:
    """Return the limits that slices of a quiet host suggest."""
    found: dict[str, float | None] = {}
    for name, floor in FLOORS.items():
        values = np.array([shares.get(name, 0.0) for shares in slices], dtype=np.float64)
        centre = float(np.median(values))
        spread = _MAD_TO_SD * float(np.median(np.abs(values - centre)))
        limit = max(floor, centre + LIMIT_SDS * spread)
        found[name] = None if centre > OWN_AFFAIR_PERCENT else round(limit, 2)
    return Limits(**found)


def watched(
    servers: Sequence[int],
    placed: Placement,
    spinners: Sequence[int],
    slice_: Callable[[], tuple[float, float]],
) -> Sample:
    """Run a slice, which gives throughput and the client's CPU time, between two readings."""
    cpus = sorted({*placed.server_cpus, *placed.client_cpus})
    before = disturbance.read(servers, cpus, spinners=spinners)
    ops_s, client_s = slice_()
    after = disturbance.read(servers, cpus, spinners=spinners)
    return Sample(ops_s=ops_s, shares=disturbance.shares(before, after, client_s=client_s))


def _alternate(
    instrument: Instrument,
    kind: Kind,
    placed: Mapping[str, Placement],
    *,
    rounds: int,
    machine: Machine,
    keep: Keep,
) -> Mapping[str, list[Sample]]:
    """Return the samples of each mode, taken in turns: there and back again."""
    found: dict[str, list[Sample]] = {mode: [] for mode in placed}
    for number in range(rounds):
        turn = list(placed.items())
        for mode, where in turn if number % 2 == 0 else reversed(turn):
            with keep(where, machine) as spinners:
                instrument.warm_up(kind, where)
                sample = instrument.sample(kind, where, spinners)
                for _ in range(RETAKES_MAX):
                    if not sample.disturbed:
                        break
                    sample = instrument.sample(kind, where, spinners)
                found[mode].append(sample)
    return found


def _figure(mode: str, kind: Kind, measured: str, samples: Sequence[Sample]) -> ModeFigure:
    values = np.array(_ops(samples))
    degrees = len(values) - 1
    cv = 100 * float(np.std(values, ddof=1) / np.mean(values))
    # Interval of a Gaussian standard deviation from the chi-square distribution.
    low, high = (
        cv * math.sqrt(degrees / float(stats.chi2.ppf(part, degrees))) for part in (0.95, 0.05)
    )
    names = samples[0].shares
    return ModeFigure(
        mode=mode,
        kind=kind,
        measured=measured,
        samples=len(values),
        disturbed=sum(bool(sample.disturbed) for sample in samples),
        mean_ops_s=float(np.mean(values)),
        cv_percent=round(cv, 3),
        cv_low_percent=round(low, 3),
        cv_high_percent=round(high, 3),
        disturbance={
            name: round(float(np.median([sample.shares[name] for sample in samples])), 2)
            for name in names
        },
    )


def _ops(samples: Sequence[Sample]) -> list[float]:
    return [sample.ops_s for sample in samples]
