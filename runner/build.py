"""Build: a commit and a build variant in, an installed artifact out.

An artifact is identified by (tree hash, variant, toolchain) and built once: a second request finds
it ready. The variant's build system runs inside the sandbox, with ccache in front of the compilers.
A build that fails raises BuildError with the tail of its log; the caller records that as an
outcome (`runner/build_failures.py`). A prebuilt variant is copied instead (`runner/prebuilt.py`).
"""

from __future__ import annotations

import hashlib
import os
import time
from typing import TYPE_CHECKING, Final

from pydantic import ByteSize, TypeAdapter

from results.document import Artifact, Commit, Toolchain
from runner import artifacts, build_failures, checkout, leavings, prebuilt, server_sources, shell
from runner.artifacts import MANIFEST, RECIPE, Installed, content_hash
from runner.build_systems import find_toolchain, recipe_of
from runner.errors import BuildError, StageError
from runner.fleet_cache.shared_artifacts import SharedArtifact
from runner.sandbox import INSIDE, Bind, Sandbox, hand_over, hand_over_top
from workloads.plan import digest

if TYPE_CHECKING:
    from pathlib import Path

    from results.job import JobOrder
    from runner.build_systems import Recipe
    from runner.fleet_cache.cache import FleetCache
    from runner.settings import Home, RunnerSettings
    from workloads.plan import BuildVariant

__all__ = ["MANIFEST", "Builder", "Installed", "artifact_id", "content_hash", "find_toolchain"]

#: A tenth of the usual share where others want the processors too, all of them where not.
_NICENESS: Final = 10


class Builder:
    """Builds commits of one repository, or finds them built."""

    def __init__(
        self,
        *,
        home: Home,
        settings: RunnerSettings,
        repository: Path,
        trusted: bool = True,
        cache: FleetCache | None = None,
        minute_s: float = 60.0,
    ) -> None:
        """Remember where things are.

        Args:
            home: Where artifacts and caches are kept.
            settings: Limits of builds.
            repository: The commits.
            trusted: Whether what these builds put into the compiler cache may reach others. Builds
                of a pull request only read from it.
            cache: What other machines of the fleet have built, where they share it.
            minute_s: Seconds in a minute of a build's time limit; tests have shorter ones.
        """
        self._home = home
        self._settings = settings
        self._repository = repository
        self._trusted = trusted
        self._cache = cache
        self._minute_s = minute_s

    @classmethod
    def of_job(
        cls, order: JobOrder, *, home: Home, settings: RunnerSettings, cache: FleetCache | None
    ) -> Builder:
        """Return the builder of a job's commits, trusted as the job is."""
        return cls(
            home=home,
            settings=settings,
            repository=order.repository,
            trusted=order.trusted,
            cache=cache,
        )

    @property
    def home(self) -> Home:
        """Where artifacts are kept."""
        return self._home

    def build(self, commit: Commit, variant_name: str, variant: BuildVariant) -> Installed:
        """Return the artifact of `commit`, building it if it is not there yet.

        A prebuilt variant is the same artifact for every commit; its own is `prebuilt.commit_of`.

        Raises:
            BuildError: A step failed; carries the step and the tail of the log. An
                InterruptedBuildError was not the commit's fault.
            StageError: The commit could not be checked out.
            OperatorError: The folder of a prebuilt variant is not there, or not what it should be.
        """
        if variant.is_prebuilt:
            return prebuilt.take(self._home, variant_name, variant)
        toolchain = find_toolchain(variant)
        identity = artifact_id(tree=commit.tree, variant=variant, toolchain=toolchain)

        def make(partial: Path) -> Artifact:
            began = time.monotonic()
            self._make(commit, variant, identity, partial)
            leavings.inspect(partial, inside=str(INSIDE / "artifact"))
            return Artifact(
                id=identity,
                variant=variant_name,
                tree=commit.tree,
                toolchain=toolchain,
                content_hash=content_hash(partial, server=variant.server),
                installed_bytes=artifacts.installed_bytes(partial),
                build_seconds=round(time.monotonic() - began, 3),
                cached=False,
            )

        elsewhere = None
        if self._cache is not None:
            elsewhere = SharedArtifact(self._cache, identity, server=variant.server)
        try:
            return artifacts.once(self._home, identity, variant_name, make, elsewhere=elsewhere)
        except (OSError, StageError) as error:
            full = build_failures.without_room(error)
            if full is None:
                raise
            raise full from error

    def share(self, installed: Installed, variant: BuildVariant) -> bool:
        """Give the fleet an artifact that is here, unless it has it; return whether it shares any.

        What was built just now was given already; what was here before may not have been.
        """
        if self._cache is None or variant.is_prebuilt:
            return False
        elsewhere = SharedArtifact(self._cache, installed.facts.id, server=variant.server)
        elsewhere.bring(installed.folder, installed.facts)
        return True

    def _make(self, commit: Commit, variant: BuildVariant, identity: str, into: Path) -> None:
        """Check out, configure, build and install."""
        source = self._home.folder("worktrees") / identity
        build = self._home.folder("builds") / identity
        leavings.remove(build)
        build.mkdir()
        log = self._home.folder("logs") / f"build-{identity}.log"
        log.unlink(missing_ok=True)
        jobs = self._settings.build_jobs or os.cpu_count() or 1
        recipe = recipe_of(variant, jobs=jobs)
        try:
            # A killed runner's worktree, which git itself could fail to remove.
            leavings.remove(source)
            with checkout.worktree(self._repository, commit, source):
                for folder in (source, build, into):
                    hand_over(folder)
                try:
                    sandbox = self._sandbox(source, build, into, recipe)
                    self._run_steps(sandbox, recipe, variant, log)
                    _require_server(into, variant, log)
                    server_sources.keep(variant, sandbox, source=source, into=into)
                finally:
                    leavings.remove(source)
        finally:
            leavings.remove(build)

    def _sandbox(self, source: Path, build: Path, into: Path, recipe: Recipe) -> Sandbox:
        ccache = self._home.folder("ccache")
        if self._trusted:
            hand_over_top(ccache)
        environment = {
            "CCACHE_DIR": str(INSIDE / "ccache"),
            "CCACHE_MAXSIZE": self._settings.ccache_size,
            **recipe.environment,
        }
        if not self._trusted:
            environment |= {"CCACHE_READONLY": "1", "CCACHE_TEMPDIR": "/tmp/ccache"}  # noqa: S108  inside
        return Sandbox(
            binds=(
                Bind(host=source, inside="source", writable=True),
                Bind(host=build, inside="build", writable=True),
                Bind(host=into, inside="artifact", writable=True),
                Bind(host=ccache, inside="ccache", writable=self._trusted),
            ),
            environment=environment,
            limits=self._settings.sandbox_limits(),
            niceness=_NICENESS,
            counts_all=True,
            ceilings={ccache: self._ccache_ceiling()} if self._trusted else {},
        )

    def _ccache_ceiling(self) -> int:
        """Return what the compiler cache may hold; ccache itself keeps to its size only roughly."""
        text = self._settings.ccache_size
        # ccache writes 20Gi where others write 20GiB, and 0 for a cache without a limit.
        size = TypeAdapter(ByteSize).validate_python(f"{text}B" if text.endswith("i") else text)
        return 2 * int(size) or 1 << 62

    def _run_steps(
        self, sandbox: Sandbox, recipe: Recipe, variant: BuildVariant, log: Path
    ) -> None:
        deadline = time.monotonic() + variant.build_minutes_max * self._minute_s
        for step in recipe.steps:
            left = max(0.1, deadline - time.monotonic())
            done = sandbox.run(step.argv, timeout_s=left, log=log)
            if not done.ok:
                for folder, ceiling in sandbox.ceilings.items():
                    # What is in there is of no use to anybody, and would end the next build too.
                    if done.stopped_by and leavings.size(folder).bytes > ceiling:
                        leavings.remove(folder)
                raise build_failures.of_step(step, done, variant, log)


def _require_server(into: Path, variant: BuildVariant, log: Path) -> None:
    """Raise BuildError unless the server program is a file of the artifact."""
    if not artifacts.holds_program(into, variant.server):
        raise BuildError("install", f"the build installed no {variant.server}", shell.tail(log))


def artifact_id(*, tree: str, variant: BuildVariant, toolchain: Toolchain) -> str:
    """Return the identity of an artifact: 32 hex digits."""
    text = "\x1f".join((RECIPE, tree, digest(variant), toolchain.digest))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
