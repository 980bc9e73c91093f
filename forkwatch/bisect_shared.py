"""Artifacts of a range that other machines of the fleet have built: they cost a search no build.

A question and the runner's settings come in, what the fleet says of its artifacts goes out. Nothing
is fetched here: that is done by the job which needs it.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from results.document import Artifact
from runner.build import artifact_id, find_toolchain
from runner.fleet_cache.notes import Kind, Level
from runner.fleet_cache.opening import open_cache

if TYPE_CHECKING:
    from collections.abc import Collection

    from forkwatch.bisect_question import Asked
    from runner.settings import RunnerSettings

_log = logging.getLogger("forkwatch.bisect")

#: Artifacts that are asked after, evenly over the range: each is one request, of about 20 ms where
#: the bucket is on the same continent.
ASKED_MAX: Final = 256


def shared_artifacts(
    asked: Asked, settings: RunnerSettings, *, here: Collection[str]
) -> dict[str, Artifact]:
    """Return the artifacts that the fleet has and this machine has not, by the hash of the commit.

    Args:
        asked: The question.
        settings: Of the runner; they say where the fleet shares what it builds.
        here: Hashes of commits whose artifact is on this machine.

    Raises:
        HostError: There is no compiler.
        OperatorError: The address of the fleet's cache is none.
    """
    # The jobs of a bisect in a checkout are trusted, and find nothing of strangers.
    cache = open_cache(settings, trusted=True)
    if cache is None:
        return {}
    variant = asked.plan.build(asked.question.variant)
    toolchain = find_toolchain(variant)
    lacking = [
        (commit.sha, tree)
        for commit, tree in zip(asked.range.commits, asked.range.trees, strict=True)
        if commit.sha not in here
    ]
    found = {}
    for sha, tree in lacking[:: 1 + max(0, len(lacking) - 1) // ASKED_MAX]:
        identity = artifact_id(tree=tree, variant=variant, toolchain=toolchain)
        told = cache.told(Kind.ARTIFACT, identity, level=Level.TRUSTED)
        if told is not None:
            # A note of a later version may say more than is known here; then it is built.
            with suppress(ValidationError):
                found[sha] = Artifact.model_validate(told)
    for warning in cache.warnings:
        _log.warning("%s", warning)
    return found
