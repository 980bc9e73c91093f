"""Machines of a fleet for tests: each has a home of its own, and all of them one place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from results.document import Artifact
from runner import artifacts
from runner.fleet_cache.cache import FleetCache
from runner.fleet_cache.notes import Kind
from runner.fleet_cache.shared_artifacts import SharedArtifact
from runner.fleet_cache.shared_datasets import SharedDataset
from runner.settings import Home
from runner.snapshots import Request, SnapshotStore
from tests.runner.installed_trees import TOOLCHAIN, script
from tests.runner.snapshot_requests import Maker, request

if TYPE_CHECKING:
    from pathlib import Path

    from runner.artifacts import Installed
    from tests.fakes.memory_place import MemoryPlace

SYSTEMS: Final = {Kind.ARTIFACT: "aaaaaaaa", Kind.DATASET: "dddddddd"}
IDENTITY: Final = "1f" * 16
DIGEST: Final = "2e" * 16
SERVER: Final = "bin/mysqld"


class Machine:
    """One machine on which one job runs."""

    def __init__(self, root: Path, place: MemoryPlace, **chosen: Any) -> None:
        self.home = Home(root)
        self.made = Maker()
        self.builds = 0
        given = {"systems": SYSTEMS, "trusted": True, **chosen}
        self.trusted = given["trusted"]
        self.cache = FleetCache(lambda: place, **given)

    def build(self, says: str = "hello") -> Installed:
        """Return the artifact, built here if nobody has it."""

        def make(partial: Path) -> Artifact:
            self.builds += 1
            script(partial / SERVER, f"echo {says}")
            (partial / "lib").mkdir()
            (partial / "lib" / "libx.so").symlink_to("libx.so.1")
            (partial / "lib" / "libx.so.1").write_bytes(b"library" * 1000)
            return Artifact(
                id=IDENTITY,
                variant="rel",
                tree="0" * 40,
                toolchain=TOOLCHAIN,
                content_hash=artifacts.content_hash(partial, server=SERVER),
                installed_bytes=artifacts.installed_bytes(partial),
                build_seconds=1,
                cached=False,
            )

        elsewhere = SharedArtifact(self.cache, IDENTITY, server=SERVER)
        return artifacts.once(self.home, IDENTITY, "rel", make, elsewhere=elsewhere)

    def load(self, key: str = DIGEST) -> SnapshotStore:
        """Return the store that holds the dataset, loaded here if nobody has it."""
        name = "datasets" if self.trusted else "datasets-outside"
        store = SnapshotStore(self.home.folder(name), bytes_max=10**9)
        with store.hold(self.asked(key)) as snapshot:
            assert (snapshot.data / "sbtest" / "empty.frm").exists()
        return store

    def asked(self, key: str = DIGEST) -> Request:
        """Return the request for the dataset."""
        plain = request(self.made, key)
        return Request(
            key=key,
            make=plain.make,
            estimate=plain.estimate,
            elsewhere=SharedDataset(self.cache, key),
        )
