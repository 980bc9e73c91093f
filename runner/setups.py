"""Setups: as what each side of a job is built, and how its server runs.

The order and the plan come in, a setup for each side goes out. Sides differ in it only in a matrix,
and where builds are compared instead of commits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from results.slice import SideName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from results.job import JobOrder
    from workloads.plan import BuildVariant, Plan, ServerConfig, Suite


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A build variant and a server config, with their names in the plan."""

    variant: str
    build: BuildVariant
    config: str
    server: ServerConfig


def setups(order: JobOrder, plan: Plan, suite: Suite) -> dict[SideName, Setup]:
    """Return the setup of each side.

    Raises:
        PlanError: The order names a build or a config that the plan does not have.
    """
    found = {}
    for side in SideName:
        variant = order.variants.get(side, suite.build)
        config = order.configs.get(side, suite.config)
        found[side] = Setup(
            variant=variant,
            build=plan.build(variant),
            config=config,
            server=plan.config(config),
        )
    return found


def run_alike(sides: Mapping[SideName, Setup]) -> bool:
    """Whether equal artifacts would be equal servers on both sides: same program, same config."""
    one, other = (
        (setup.build.server, setup.build.loader, setup.build.library_paths, setup.config)
        for setup in (sides[SideName.BASELINE], sides[SideName.CANDIDATE])
    )
    return one == other
