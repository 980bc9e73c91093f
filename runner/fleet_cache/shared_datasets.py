"""Datasets in the fleet's cache: the one snapshot of a dataset's digest, fetched or brought.

A snapshot's folder goes in or out with what its manifest says. What a load took on another machine
is left out: it is nothing that this host measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import AwareDatetime, BaseModel, ConfigDict, JsonValue, ValidationError

from runner import manifest, sandbox
from runner.fleet_cache.contents import index_of
from runner.fleet_cache.errors import DamagedPackError
from runner.fleet_cache.notes import Kind
from runner.manifest import DATA
from runner.snapshots import Made

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from runner.fleet_cache.cache import FleetCache

#: What the maker measured of its own machine, among the facts of a manifest.
_OF_ITS_HOST: Final = "measured"


class _Said(BaseModel):
    """What goes with a dataset's files."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    created_at: AwareDatetime
    load_seconds: float
    facts: dict[str, JsonValue]


class SharedDataset:
    """Where else one dataset may be: satisfies `snapshots.Elsewhere`."""

    def __init__(self, cache: FleetCache, digest: str) -> None:
        self._cache, self._digest = cache, digest

    def fetch(self, data: Path) -> Made | None:
        """Fill an empty folder with the dataset's files and say when they were made, or None."""
        for level in self._cache.levels:
            found = self._cache.fetch(
                Kind.DATASET,
                self._digest,
                data,
                level=level,
                accept=lambda facts: _accept(facts, data),
            )
            if found is not None:
                said = _Said.model_validate(found)
                return Made(
                    facts=said.facts, created_at=said.created_at, load_seconds=said.load_seconds
                )
        return None

    def bring(self, folder: Path) -> None:
        """Give the fleet the snapshot in `folder`."""
        written = manifest.read(folder)
        facts = {name: fact for name, fact in written.facts.items() if name != _OF_ITS_HOST}
        said = _Said(created_at=written.created_at, load_seconds=written.load_seconds, facts=facts)
        data = folder / DATA
        self._cache.bring(
            Kind.DATASET,
            self._digest,
            data,
            lambda: index_of(data, written.entries, written.checksums),
            said.model_dump(mode="json"),
        )


def _accept(facts: Mapping[str, JsonValue], data: Path) -> None:
    """Look at what came, and give it to whoever runs servers here, as a load does.

    Raises:
        DamagedPackError: It is not what a dataset comes with.
    """
    try:
        _Said.model_validate(facts)
    except ValidationError as error:
        raise DamagedPackError(f"its facts have {error.error_count()} faults") from None
    sandbox.hand_over(data)
