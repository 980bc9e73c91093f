"""The flows that are killed: what was before, what is pushed, what somebody does.

A folder comes in, templates go out: a home folder with a history, the repository behind it, and
GitHub and Slack as they were then. Every life of a scene begins with copies of these.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.fakes.github_api.double import GitHubDouble
    from tests.fakes.slack_api import SlackDouble

QUIET: Final = ("Import", "Quiet", "Quiet too")
SLOWER: Final = "Slower scan speed=0.88"
#: Steps of this flow run at every start, and belong to its own scene alone.
_BACKGROUND: Final = "digest_"


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One flow, or several that follow from the same thing."""

    name: str
    #: Subjects of the commits that were measured before.
    history: tuple[str, ...] = QUIET
    #: What is pushed to the branch.
    pushed: tuple[str, ...] = ()
    #: Subject of the head of a pull request, where there is one.
    head: str = ""
    deed: str = ""
    #: Days that pass since the history.
    days: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    def counts(self, step: str) -> bool:
        """Whether a step belongs to this scene."""
        return self.name == "digest" or not step.startswith(_BACKGROUND)


SCENES: Final = (
    Scene(name="commit", pushed=("Quiet again",)),
    Scene(name="confirm and alert", pushed=(SLOWER,)),
    Scene(name="lost runner", pushed=("Quiet lose=1",)),
    Scene(name="close", history=(*QUIET, SLOWER), pushed=("Fast again speed=1.0",)),
    Scene(name="pull request", head="Slower scan speed=0.8", deed="open_pull_request"),
    Scene(name="comment order", head="Nobody asks speed=1.0", deed="comment"),
    Scene(name="alert order", history=(*QUIET, SLOWER), deed="call_false"),
    Scene(name="slack button", history=(*QUIET, SLOWER), deed="click"),
    Scene(name="bisect", history=(*QUIET, SLOWER, "After it speed=0.88"), deed="bisect"),
    Scene(name="digest", history=(*QUIET, SLOWER), days=9),
    Scene(
        name="retention",
        days=9,
        settings={"keep_samples_days": 1, "keep_seconds_days": 1},
    ),
)


@dataclass(kw_only=True)
class Outside:
    """GitHub and Slack at one moment."""

    github: dict[str, Any]
    slack: dict[str, Any]

    @classmethod
    def of(cls, github: GitHubDouble, slack: SlackDouble) -> Outside:
        """Remember them as they are."""
        return cls(github=_copied(vars(github.world)), slack=_copied(vars(slack)))

    def restore(self, github: GitHubDouble, slack: SlackDouble) -> None:
        """Have two doubles be as it was."""
        vars(github.world).update(_copied(self.github))
        vars(slack).update({k: v for k, v in _copied(self.slack).items() if k != "url"})


def _copied(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a double; the description of an API is too large and never changes."""
    kept = {name: part for name, part in parts.items() if name not in {"_description", "heard"}}
    return copy.deepcopy(kept)
