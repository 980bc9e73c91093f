"""Subjects: what one side of a comparison is called on the command line.

`REVISION` is a commit, built as the suite says. `build:NAME` is a build variant of the plan: a
prebuilt one as it lies in its folder, any other of HEAD or of the commit in `build:NAME@REVISION`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from forkwatch.errors import DoorError
from runner import checkout, prebuilt

if TYPE_CHECKING:
    from pathlib import Path

    from results.document import Commit, RunDocument
    from workloads.plan import Plan

_BUILD: Final = "build:"


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A commit with the name of the variant that it is built as."""

    commit: Commit
    build: str


def subject_of(text: str, *, repository: Path, plan: Plan, usual: str) -> Subject:
    """Return what `text` names; `usual` is the build where it does not name one.

    Raises:
        DoorError: A commit was asked for where nothing is built.
        OperatorError: There is no such commit, or no tree in the folder of a prebuilt variant.
        PlanError: There is no such build; names the nearest.
    """
    named = text.startswith(_BUILD)
    build, _, revision = text.removeprefix(_BUILD).partition("@") if named else (usual, "", text)
    variant = plan.build(build)
    if not variant.is_prebuilt:
        return Subject(commit=checkout.resolve(repository, revision or "HEAD"), build=build)
    if revision:
        others = [name for name, other in plan.builds.items() if not other.is_prebuilt]
        instead = f"build:NAME@{revision}, with NAME one of {', '.join(others)}" if others else ""
        raise DoorError(
            f"build {build!r} is prebuilt, so no commit is built as it: say {_BUILD}{build}"
            + (f" or {instead}" if instead else "")
        )
    return Subject(commit=prebuilt.commit_of(build, variant), build=build)


def name_of(document: RunDocument) -> str:
    """Return how a sentence calls the candidate: by its hash, or by its build if that tells more.

    Two builds of one commit share the hash, and that of a prebuilt one is in no repository.
    """
    candidate, baseline = document.candidate, document.baseline
    variant = candidate.variant or document.variant
    if prebuilt.is_prebuilt(candidate.artifact):
        return variant
    if baseline is None or baseline.commit.sha != candidate.commit.sha:
        return candidate.commit.sha
    return candidate.commit.sha if variant == (baseline.variant or document.variant) else variant
