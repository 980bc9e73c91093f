"""Twins: an artifact copied to where the build of another name would put its own.

An installed artifact and the name and recipe of its twin come in; on the disk there are two then,
which are the same. What a pair of twins measures is what a host makes up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner import artifacts, tree_copies, trees
from runner.build import artifact_id
from runner.errors import OperatorError
from runner.host.storage import why_not_written

if TYPE_CHECKING:
    from pathlib import Path

    from results.document import Artifact, Commit
    from runner.artifacts import Installed
    from runner.settings import Home
    from runner.setups import Setup
    from workloads.plan import BuildVariant


def are_twins(one: Setup, other: Setup) -> bool:
    """Whether two builds are one recipe under two names, so that one may be a copy of the other.

    How long a build may take says nothing about what it makes.
    """
    if one.variant == other.variant or one.build.is_prebuilt:
        return False
    alike = {"build_minutes_max": other.build.build_minutes_max}
    return one.build.model_copy(update=alike) == other.build


def copy_artifact(
    installed: Installed, commit: Commit, name: str, variant: BuildVariant, *, home: Home
) -> None:
    """Lay a copy of an artifact where a build of `variant` would be, if nothing is there yet.

    Two files have pages of their own in memory, as those of two commits have; blocks on the disk
    are shared where the file system can.

    Raises:
        OperatorError: There is no room.
    """
    facts = installed.facts
    identity = artifact_id(tree=commit.tree, variant=variant, toolchain=facts.toolchain)

    def make(partial: Path) -> Artifact:
        sample = next(path for path in installed.folder.rglob("*") if path.is_file())
        share = tree_copies.can_share(sample, partial)
        partial.rmdir()
        tree_copies.copy(installed.folder, trees.scan(installed.folder), [partial], share=share)
        return facts.model_copy(update={"id": identity, "variant": name, "cached": True})

    try:
        artifacts.once(home, identity, name, make)
    except OSError as error:
        raise OperatorError(
            f"the artifact could not be copied: {why_not_written(installed.folder, error)}"
        ) from error
