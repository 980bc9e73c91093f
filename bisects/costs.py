"""What the next job of a commit costs, learnt from the jobs so far.

Observations come in, seconds go out. First guesses count until there is something better; medians,
so that one slow build teaches nothing wrong.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final

from bisects.document import CommitState

if TYPE_CHECKING:
    from collections.abc import Collection

    from bisects.document import Observation

#: So much of its build counts when a commit is weighed that is not built: a search builds about as
#: often whatever is said here above nothing, and measures the more the more it is
#: (docs/statistics/bisection.md).
BUILD_SHARE: Final = 0.2
#: A commit that is measured at all is measured about twice.
BUILDS_A_JOB: Final = 0.5
#: Nothing is free, and a cost has to be positive.
SECONDS_MIN: Final = 0.1


class Costs:
    """Seconds of a job of each commit.

    Args:
        commits: Commits of the range, both ends counted.
        build_seconds: A first guess at one build.
        measure_seconds: The same for one job without its build.
        built: Places of the commits whose artifact is there.
    """

    def __init__(
        self, commits: int, *, build_seconds: float, measure_seconds: float, built: Collection[int]
    ) -> None:
        self._commits = commits
        self._first = (build_seconds, measure_seconds)
        # The good end is built in the first job, whichever that is.
        self._built = {0, *built}
        self._builds: list[float] = []
        self._measurements: list[float] = []

    @property
    def build_seconds(self) -> float:
        """What one build takes."""
        return max(SECONDS_MIN, median(self._builds) if self._builds else self._first[0])

    @property
    def measure_seconds(self) -> float:
        """What one job takes without its build."""
        found = median(self._measurements) if self._measurements else self._first[1]
        return max(SECONDS_MIN, found)

    def learn(self, observation: Observation) -> None:
        """Take in what a job took."""
        if observation.state is CommitState.MEASURED:
            self._measurements.append(observation.seconds - observation.build_seconds)
        # How long a build takes until it fails says nothing of one that does not.
        fresh = observation.commit not in self._built
        if observation.state is not CommitState.BROKEN and fresh:
            self._builds.append(observation.build_seconds)
            self._built.add(observation.commit)

    def is_built(self, commit: int) -> bool:
        """Whether the artifact of a commit is there, as far as is known."""
        return commit in self._built

    def of(self, commit: int) -> float:
        """Return what the next job of a commit costs, its share of a build included."""
        build = 0.0 if self.is_built(commit) else BUILD_SHARE * self.build_seconds
        return self.measure_seconds + build

    def to_come(self, jobs: int) -> float:
        """Return what so many jobs will roughly cost, of commits that are built or not as usual."""
        unbuilt = self._commits - len(self._built)
        builds = min(float(unbuilt), BUILDS_A_JOB * jobs * unbuilt / self._commits)
        return jobs * self.measure_seconds + builds * self.build_seconds
