"""The plan of a fork: `forkwatch.toml` as frozen values.

Text comes in, a `Plan` or a `PlanError` goes out. An unknown key is an error that names the
nearest known key, so that a misspelt gate never silently watches nothing. docs/plan.md explains
every key.
"""

from __future__ import annotations

import itertools
import tomllib
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints, ValidationError, field_validator, model_validator

from workloads.errors import PlanError
from workloads.plan_builds import SERVERS, BuildVariant
from workloads.plan_checks import MATRIX_CELLS_MAX, faults_of, too_many_cells, workload_faults
from workloads.plan_datasets import DatasetPlan, Suite, series_name, spelt_out
from workloads.plan_slack import SlackPlan
from workloads.plan_values import Key, OptionName, OptionValue, Table, digest, nearest
from workloads.plan_words import explain

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = [
    "MATRIX_CELLS_MAX",
    "PLAN_BYTES_MAX",
    "PLAN_FILE",
    "BuildVariant",
    "DatasetPlan",
    "Fork",
    "Gates",
    "HostPlan",
    "Matrix",
    "Notify",
    "Plan",
    "ServerConfig",
    "SlackPlan",
    "Suite",
    "digest",
    "parse_plan",
    "read_plan",
    "too_many_cells",
]

PLAN_FILE: Final = "forkwatch.toml"
#: A plan is a page of text; anything larger is a mistake or an attack.
PLAN_BYTES_MAX: Final = 256 * 1024

Engine = Literal["mariadb", "mysql", "postgres", "rocksdb", "leveldb"]


class Fork(Table):
    """What is watched."""

    name: Key = Field(description="Name of the fork in tables, URLs and alerts.")
    branch: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_./+-]+$", max_length=200)] = (
        Field(default="main", description="The branch whose commits are measured.")
    )
    engine: Engine = Field(
        description="Server family, or library; decides how data is made and what runs on it."
    )


class ServerConfig(Table):
    """A named my.cnf: options of the server, without leading dashes."""

    options: dict[OptionName, OptionValue] = Field(
        default_factory=dict, description="Options by name; they override the engine's own."
    )


class Gates(Table):
    """The smallest relative loss that matters, per workload."""

    default: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.05, description="0.05 means: a loss of 5 % matters."
    )
    workloads: dict[str, Annotated[float, Field(gt=0, lt=1)]] = Field(
        default_factory=dict, description="Gates of single workloads, by name."
    )
    false_alarm_rate: Annotated[float, Field(gt=0, le=0.1)] = Field(
        default=0.001,
        description="Chance that a commit without any change is called a regression.",
    )

    @field_validator("workloads", mode="after")
    @classmethod
    def _by_series(cls, gates: dict[str, float]) -> dict[str, float]:
        """Know a workload by the name that its series are kept under."""
        return {series_name(name): gate for name, gate in gates.items()}

    def gate(self, workload: str) -> float:
        """Return the gate of a workload as a fraction."""
        return self.workloads.get(workload, self.default)


class Matrix(Table):
    """Builds x configs, each compared with the first build under the first config."""

    builds: Annotated[tuple[Key, ...], Field(min_length=1)] = Field(
        description="Names of build variants; the first is the base."
    )
    configs: Annotated[tuple[Key, ...], Field(min_length=1)] = Field(
        default=("default",), description="Names of server configs; the first is the base."
    )
    suite: Key = Field(
        default="commit", description="What to measure; its own build and config do not matter."
    )

    def cells(self) -> tuple[tuple[str, str], ...]:
        """Return (build, config) of every cell, the base first."""
        return tuple(itertools.product(self.builds, self.configs))


class HostPlan(Table):
    """How machines of one host class place server and client."""

    placement: Literal["shared-core", "disjoint", "disjoint-awake", "unpinned"] | None = Field(
        default=None,
        description="What `forkwatch host calibrate` found quietest where not set; without a "
        "calibration one core for one client, separate cores for several.",
    )


class Notify(Table):
    """Where alerts go, besides the code host."""

    alert_folder: Annotated[str, StringConstraints(max_length=1024)] | None = Field(
        default=None, description="Folder for alert files; the service's own where not set."
    )
    slack: SlackPlan = Field(
        default_factory=SlackPlan, description="Channels and quiet hours on Slack."
    )


class Plan(Table):
    """A whole `forkwatch.toml`."""

    fork: Fork
    builds: dict[Key, BuildVariant] = Field(min_length=1)
    configs: dict[Key, ServerConfig] = Field(default_factory=lambda: {"default": ServerConfig()})
    datasets: dict[Key, DatasetPlan] = Field(default_factory=lambda: {"small": DatasetPlan()})
    suites: dict[Key, Suite] = Field(min_length=1)
    gates: Gates = Field(default_factory=Gates)
    hosts: dict[Key, HostPlan] = Field(default_factory=lambda: {"default": HostPlan()})
    notify: Notify = Field(default_factory=Notify)
    matrices: dict[Key, Matrix] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _servers_of_the_engine(cls, data: Any) -> Any:
        """Name the measured program of every build that does not: a build knows no engine."""
        match data:
            case {"fork": {"engine": str(engine)}, "builds": dict(builds)} if engine in SERVERS:
                named = {
                    name: {"server": SERVERS[engine], **build} if isinstance(build, dict) else build
                    for name, build in builds.items()
                }
                return {**data, "builds": named}
        return data

    def suite(self, name: str) -> Suite:
        """Return the suite called `name`, or raise PlanError with the nearest name."""
        if name not in self.suites:
            raise PlanError(f"no suite {name!r}{nearest(name, self.suites)}")
        return self.suites[name]

    def build(self, name: str) -> BuildVariant:
        """Return the build variant called `name`, or raise PlanError with the nearest name."""
        if name not in self.builds:
            raise PlanError(f"no build {name!r}{nearest(name, self.builds)}")
        return self.builds[name]

    def config(self, name: str) -> ServerConfig:
        """Return the server config called `name`, or raise PlanError with the nearest name."""
        if name not in self.configs:
            raise PlanError(f"no config {name!r}{nearest(name, self.configs)}")
        return self.configs[name]

    def matrix(self, name: str) -> Matrix:
        """Return the matrix called `name`, or raise PlanError with the nearest name."""
        if name not in self.matrices:
            none = "" if self.matrices else "; write a table [matrices.NAME] with its builds"
            raise PlanError(f"no matrix {name!r}{nearest(name, self.matrices)}{none}")
        return self.matrices[name]

    def workloads(self, suite: str, names: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the workloads to measure: these, lists spelt out, or all of the suite.

        Raises:
            PlanError: There is no such suite or workload, or its dataset cannot run one.
        """
        chosen = self.suite(suite)
        if not names:
            return chosen.workloads
        asked = spelt_out(names)
        faults = workload_faults(self, chosen, asked)
        if faults:
            raise PlanError("\n".join(faults))
        return asked


def read_plan(path: Path) -> Plan:
    """Read the plan at `path`.

    Raises:
        PlanError: No such file, or its content is wrong.
    """
    try:
        size = path.stat().st_size
        if size > PLAN_BYTES_MAX:
            raise PlanError(f"{path} has {size} bytes; a plan may have {PLAN_BYTES_MAX}")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PlanError(f"{path} does not exist; `forkwatch init` writes one") from None
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"{path} cannot be read: {error}") from error
    return parse_plan(text, source=str(path))


def parse_plan(text: str, *, source: str = PLAN_FILE) -> Plan:
    """Return the plan written in `text`.

    Raises:
        PlanError: Not TOML, an unknown key, a wrong value, a dangling name or a workload that does
            not fit; the message lists every fault on its own line.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{source}: not TOML: {error}") from error
    try:
        plan = Plan.model_validate(data)
    except ValidationError as error:
        lines = [explain(fault, Plan) for fault in error.errors()]
        raise PlanError("\n".join(f"{source}: {line}" for line in lines)) from error
    faults = faults_of(plan)
    if faults:
        raise PlanError("\n".join(f"{source}: {fault}" for fault in faults))
    return plan
