"""Profile: what calibration found out about this host, kept in the home folder.

Which placement is the quietest for each kind of workload, how noisy each was, how much disturbance
a quiet slice shows, and which processors take the interrupts. Jobs read it; calibration writes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from runner.disturbance import Limits
from runner.errors import HostError
from runner.host.storage import write_whole

if TYPE_CHECKING:
    from pathlib import Path

PROFILE: Final = "profile.json"

#: With more of its slices disturbed, a calibration says nothing about the host.
DISTURBED_SHARE_MAX: Final = 0.2

Kind = Literal["single-client", "several-clients", "io"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ModeFigure(_Part):
    """How one placement behaved for one kind of workload."""

    mode: str
    kind: Kind
    #: What was run: `ping-pong` or a workload's name.
    measured: str
    #: Slices; each one number.
    samples: int = Field(ge=2)
    #: Of these, slices with others' load in them, even when taken again.
    disturbed: int = Field(ge=0)
    mean_ops_s: float = Field(gt=0)
    #: Standard deviation over mean, and its 90 % interval if the samples are Gaussian.
    cv_percent: float = Field(ge=0)
    cv_low_percent: float = Field(ge=0)
    cv_high_percent: float = Field(ge=0)
    #: Median share of each disturbance in a slice, in percent.
    disturbance: dict[str, float] = Field(default_factory=dict)


class HostProfile(_Part):
    """The findings of one calibration."""

    version: Literal[1] = 1
    made_at: AwareDatetime
    #: Of the host as it was; another one means that it should be calibrated again.
    fingerprint: str
    #: The quietest mode for each kind.
    modes: dict[str, str]
    figures: tuple[ModeFigure, ...]
    #: By mode and kind, as `limits_key` writes them.
    limits: dict[str, Limits] = Field(default_factory=dict)
    #: Processors that take the device interrupts.
    avoid: tuple[int, ...] = ()

    def too_busy(self) -> str:
        """Return why these findings are about others' load; empty where they are about the host."""
        disturbed = sum(figure.disturbed for figure in self.figures)
        samples = sum(figure.samples for figure in self.figures)
        if disturbed <= DISTURBED_SHARE_MAX * samples:
            return ""
        return (
            f"{disturbed} of {samples} slices had others' load in them: "
            "stop what else runs here and calibrate again"
        )

    def limits_for(self, mode: str, kind: Kind) -> Limits:
        """Return what a quiet slice may show; the defaults where nothing was calibrated."""
        return self.limits.get(limits_key(mode, kind), Limits())


def limits_key(mode: str, kind: Kind) -> str:
    """Return the key under which limits are kept."""
    return f"{mode}/{kind}"


def kind_of(*, threads: int, writes_only: bool = False) -> Kind:
    """Return what kind of load a job is, as far as placement cares."""
    if writes_only:
        return "io"
    return "single-client" if threads == 1 else "several-clients"


def read(folder: Path) -> HostProfile | None:
    """Return the profile in the host's folder, or None where nothing was calibrated.

    Raises:
        HostError: There is one that this version does not understand.
    """
    path = folder / PROFILE
    try:
        return HostProfile.model_validate_json(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise HostError(
            f"{path} is no host profile; `forkwatch host calibrate` writes it anew"
        ) from error


def write(folder: Path, profile: HostProfile) -> None:
    """Keep a profile."""
    write_whole(folder / PROFILE, profile.model_dump_json(indent=2))
