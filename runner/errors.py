"""Errors of the instrument.

RunnerError
├── OperatorError          something on this machine or in the call is wrong; says what to do
│   └── HostError          a needed program or kernel feature is missing
├── StageError             a stage of a job failed: becomes the outcome of the run document
│   ├── BuildError         configure, build or install failed
│   │   └── InterruptedBuildError  the machine ended it: killed, no memory, no space
│   ├── DatasetError       the dataset could not be loaded or restored
│   │   └── DamagedError   (runner/manifest.py) a snapshot is not what was stored
│   ├── ServerError        the server did not start, died, or did not stop
│   │   └── NoCountsError   (runner/callgrind.py) callgrind counted nothing
│   └── ClientError        the benchmark client failed or reported nothing
├── FleetCacheError        (runner/fleet_cache/errors.py) becomes a warning, never a failed job
└── SubmitError            the service did not take the run document
"""

from __future__ import annotations

from typing import ClassVar

from results.document import Cause


class RunnerError(Exception):
    """Something in the instrument failed."""


class OperatorError(RunnerError):
    """Something on this machine or in the call is wrong; the message says what to do."""


class HostError(OperatorError):
    """A needed program or kernel feature is missing."""


class StageError(RunnerError):
    """A stage of a job failed."""

    #: Whose fault that is, where it is known by its kind.
    cause: ClassVar[Cause | None] = None

    def __init__(self, stage: str, message: str, log_tail: str = "") -> None:
        super().__init__(message)
        self.stage = stage
        self.log_tail = log_tail
        #: Which side of a pair it happened to; empty for neither alone, None until it is known.
        self.side: str | None = None


class BuildError(StageError):
    """Configure, build or install failed."""

    cause = Cause.COMMIT


class InterruptedBuildError(BuildError):
    """The machine ended a build: it was killed from outside, or memory or space ran out."""

    cause = Cause.HOST


class DatasetError(StageError):
    """The dataset could not be loaded or restored."""


class ServerError(StageError):
    """The server did not start, died, or did not stop."""


class ClientError(StageError):
    """The benchmark client failed or reported nothing."""


class SubmitError(RunnerError):
    """The service did not take the run document."""
