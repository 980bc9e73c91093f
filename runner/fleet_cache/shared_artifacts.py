"""Artifacts in the fleet's cache: the one artifact of an identity, fetched or brought.

A folder goes in or out with the artifact's facts. What comes is looked at as a build's result is:
nothing in it leads out, and its content is the one that its facts name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from results.document import Artifact
from runner import artifacts, leavings, sandbox, trees
from runner.errors import BuildError
from runner.fleet_cache.contents import index_of
from runner.fleet_cache.errors import DamagedPackError
from runner.fleet_cache.notes import Kind, Level

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pydantic import JsonValue

    from runner.fleet_cache.cache import FleetCache
    from runner.fleet_cache.contents import Index


class SharedArtifact:
    """Where else one artifact may be: satisfies `artifacts.Elsewhere`."""

    def __init__(self, cache: FleetCache, identity: str, *, server: str) -> None:
        """Remember which.

        Args:
            cache: The fleet's cache.
            identity: The artifact's.
            server: The server program in it.
        """
        self._cache, self._identity, self._server = cache, identity, server

    @property
    def takes_strangers(self) -> bool:
        """Whether this job may use what jobs of strangers have made."""
        return Level.OUTSIDE in self._cache.levels

    def fetch(self, partial: Path, *, strangers: bool = False) -> Artifact | None:
        """Fill an empty folder with the artifact and return its facts, or None."""
        found = self._cache.fetch(
            Kind.ARTIFACT,
            self._identity,
            partial,
            level=Level.OUTSIDE if strangers else Level.TRUSTED,
            accept=lambda facts: self._accept(facts, partial),
        )
        return None if found is None else Artifact.model_validate(found)

    def bring(self, folder: Path, facts: Artifact) -> None:
        """Give the fleet the artifact in `folder`."""
        said = facts.model_dump(mode="json")
        self._cache.bring(Kind.ARTIFACT, self._identity, folder, lambda: _index(folder), said)

    def _accept(self, facts: Mapping[str, JsonValue], partial: Path) -> None:
        """Look at what came.

        Raises:
            DamagedPackError: It is not what its facts say.
        """
        try:
            artifact = Artifact.model_validate(facts)
            leavings.inspect(partial, inside=str(sandbox.INSIDE / "artifact"))
        except ValidationError as error:
            raise DamagedPackError(f"its facts have {error.error_count()} faults") from None
        except BuildError as error:
            raise DamagedPackError(str(error)) from error
        if artifact.id != self._identity:
            raise DamagedPackError(f"it is the artifact {artifact.id[:64]}")
        if not artifacts.holds_program(partial, self._server):
            raise DamagedPackError(f"it has no {self._server}")
        if (
            artifacts.content_hash(partial, server=self._server) != artifact.content_hash
            or artifacts.installed_bytes(partial) != artifact.installed_bytes
        ):
            raise DamagedPackError("its files are not those of its facts")
        # As a build leaves it: whatever runs it runs in the sandbox.
        sandbox.hand_over(partial)


def _index(folder: Path) -> Index:
    """Return the index of an artifact without what this machine has noted beside it."""
    entries = [entry for entry in trees.scan(folder) if entry.path != artifacts.MANIFEST]
    return index_of(folder, entries, trees.checksums(folder, entries))
