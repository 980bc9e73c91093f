"""Sides: the commits, setups and artifacts of a job, the baseline's and the candidate's.

The order and the plan come in; out go artifacts, what to run of them, and the sides as the run
document has them. Nothing is measured here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from results import sources
from results.document import Side
from results.slice import SideName
from runner import checkout, prebuilt, server_sources
from runner.errors import BuildError, InterruptedBuildError, OperatorError, StageError
from runner.servers.engine import ServerSpec
from runner.servers.engines import engine_of
from runner.setups import run_alike, setups
from runner.twins import are_twins, copy_artifact

if TYPE_CHECKING:
    from results.document import Commit
    from results.job import JobOrder
    from results.sources import OutsideSources
    from runner.build import Builder, Installed
    from runner.limits import Limits
    from runner.setups import Setup
    from workloads.plan import Plan, Suite


#: Of a job that only builds, on a machine that gives nothing away.
_NOT_SHARED: Final = (
    "what was built is on this machine alone: no fleet's cache is set (FORKWATCH_CACHE_URL)"
)


class Sides:
    """What is known of each side so far."""

    def __init__(self, order: JobOrder, plan: Plan, suite: Suite, builder: Builder) -> None:
        """Find the commits.

        Raises:
            OperatorError: There is no such commit, or a prebuilt tree is not the one ordered.
            PlanError: The order names a build or a config that the plan does not have.
        """
        self._order, self._plan, self._suite = order, plan, suite
        self._builder = builder
        self.setups: dict[SideName, Setup] = setups(order, plan, suite)
        self.commits: dict[SideName, Commit] = {
            SideName.CANDIDATE: self._commit(SideName.CANDIDATE, order.candidate)
        }
        if order.baseline:
            self.commits[SideName.BASELINE] = self._commit(SideName.BASELINE, order.baseline)
        self._installed: dict[SideName, Installed] = {}

    def _commit(self, side: SideName, sha: str) -> Commit:
        setup = self.setups[side]
        if not setup.build.is_prebuilt:
            return checkout.resolve(self._order.repository, sha)
        commit = prebuilt.commit_of(setup.variant, setup.build)
        if commit.sha != sha:
            raise OperatorError(
                f"build {setup.variant!r} is prebuilt and its folder holds {commit.sha[:8]}, while "
                f"{sha[:8]} was ordered; name it as build:{setup.variant}"
            )
        return commit

    def build(self, side: SideName) -> None:
        """Build one side, or find it built.

        Raises:
            BuildError: The candidate does not build.
            InterruptedBuildError: The machine ended the build of either.
            StageError: The baseline does not build, or a commit could not be checked out.
        """
        setup = self.setups[side]
        if side is SideName.CANDIDATE and self._is_copy:
            self.build(SideName.BASELINE)
            original, commit = self._installed[SideName.BASELINE], self.commits[side]
            copy_artifact(original, commit, setup.variant, setup.build, home=self._builder.home)
        try:
            self._installed[side] = self._builder.build(
                self.commits[side], setup.variant, setup.build
            )
        except InterruptedBuildError as error:
            error.side = side.value
            raise
        except BuildError as error:
            if side is SideName.BASELINE:
                raise StageError(error.stage, f"baseline: {error}", error.log_tail) from error
            raise

    @property
    def _is_copy(self) -> bool:
        """Whether the candidate is the baseline once more, as in an A/A check."""
        one, other = self.setups[SideName.BASELINE], self.setups[SideName.CANDIDATE]
        same = self.commits.get(SideName.BASELINE) == self.commits[SideName.CANDIDATE]
        # What strangers have made may lie aside, and a copy would lie among what is ours.
        return self._order.trusted and same and are_twins(one, other)

    def is_unchanged(self) -> bool:
        """Whether the candidate installs what it would be compared with."""
        candidate = self._installed[SideName.CANDIDATE].facts.content_hash
        if SideName.BASELINE in self._installed:
            same = self._installed[SideName.BASELINE].facts.content_hash == candidate
            return same and run_alike(self.setups)
        setup = self.setups[SideName.CANDIDATE]
        if self._order.unchanged_from is None or setup.build.is_prebuilt:
            return False
        earlier = checkout.resolve(self._order.repository, self._order.unchanged_from)
        try:
            installed = self._builder.build(earlier, setup.variant, setup.build)
        except StageError:
            # Nothing to be equal to: the earlier commit does not build any more.
            return False
        return installed.facts.content_hash == candidate

    def specs(self, limits: Limits) -> dict[SideName, ServerSpec]:
        """Return what to run on each side, the baseline first, and learn its version.

        Raises:
            StageError: A program does not tell its version.
        """
        found = {}
        for side in (SideName.BASELINE, SideName.CANDIDATE):
            if side not in self._installed:
                continue
            spec = self._spec(self.setups[side], self._installed[side], limits)
            version = engine_of(self._plan.fork.engine).version(spec)
            facts = spec.installed.facts.model_copy(update={"server_version": version})
            self._installed[side] = replace(spec.installed, facts=facts)
            found[side] = replace(spec, installed=self._installed[side])
        return found

    def _spec(self, setup: Setup, installed: Installed, limits: Limits) -> ServerSpec:
        return ServerSpec(
            engine=self._plan.fork.engine,
            installed=installed,
            program=setup.build.server,
            install_db=setup.build.install_db,
            options=setup.server.options,
            storage_engine=self._plan.datasets[self._suite.dataset].storage_engine,
            loader=setup.build.loader,
            library_paths=setup.build.library_paths,
            limits=limits,
        )

    def share(self) -> tuple[str, ...]:
        """Give the fleet what is built; return what a reader of the document should know."""
        shared = [
            self._builder.share(installed, self.setups[side].build)
            for side, installed in self._installed.items()
        ]
        return () if all(shared) else (_NOT_SHARED,)

    def outside(self) -> OutsideSources | None:
        """Return which sources neither server is made of, if that is asked and both are built."""
        if not (self._order.tell_sources and len(self._installed) > 1):
            return None
        lists = [server_sources.read(one.folder) for one in self._installed.values()]
        return sources.told(frozenset.intersection(*lists))

    def as_documented(self, side: SideName) -> Side:
        """Return a side as the run document has it."""
        installed, setup = self._installed.get(side), self.setups[side]
        return Side(
            commit=self.commits[side],
            artifact=installed.facts if installed else None,
            variant=setup.variant,
            config=setup.config,
        )
