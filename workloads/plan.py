"""The plan of a fork: `forkwatch.toml` as frozen values.

Text comes in, a `Plan` or a `PlanError` goes out. An unknown key is an error that names the
nearest known key, so that a misspelt gate never silently watches nothing.
"""

from __future__ import annotations

import difflib
import hashlib
import itertools
import json
import tomllib
import types
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from workloads.catalog import find_workload
from workloads.errors import CatalogError, PlanError

if TYPE_CHECKING:
    from pathlib import Path

PLAN_FILE: Final = "forkwatch.toml"
#: A plan is a page of text; anything larger is a mistake or an attack.
PLAN_BYTES_MAX: Final = 256 * 1024
#: The base and 24 pairs with it: at half an hour of measuring each, the default budget of a pair,
#: that is one night of one machine. A matrix that outgrows a night is two questions.
MATRIX_CELLS_MAX: Final = 25

Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
OptionName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_:.-]{0,127}$")]
OptionValue = Annotated[str, StringConstraints(max_length=4096)] | int | float | bool
#: An argument handed to a compiler or build tool; never a shell line.
Argument = Annotated[str, StringConstraints(max_length=4096)]


def _stays_inside(path: str) -> str:
    if path.startswith("/") or ".." in path.split("/"):
        raise ValueError("has to be a relative path without '..'")
    return path


RelativePath = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9_./+-]+$", max_length=255),
    AfterValidator(_stays_inside),
]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Fork(_Table):
    """What is watched."""

    name: Key = Field(description="Name of the fork in tables, URLs and alerts.")
    branch: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_./+-]+$", max_length=200)] = (
        "main"
    )
    engine: Literal["mariadb", "mysql"] = Field(
        description="Server family; decides how a data directory is made and a server started."
    )


class BuildVariant(_Table):
    """A named set of CMake options, compiler and flags."""

    cmake_options: dict[OptionName, OptionValue] = Field(default_factory=dict)
    c_compiler: RelativePath = "gcc"
    cxx_compiler: RelativePath = "g++"
    c_flags: tuple[Argument, ...] = ()
    cxx_flags: tuple[Argument, ...] = ()
    linker: Literal["default", "mold", "lld", "gold"] = "default"
    targets: tuple[Key, ...] = Field(default=("all",), description="Build targets.")
    install_components: tuple[Key, ...] = Field(
        default=(), description="CMake install components; empty installs everything."
    )
    server: RelativePath = Field(
        default="bin/mariadbd", description="The server program, relative to the install prefix."
    )
    install_db: RelativePath | None = Field(
        default=None,
        description="Script that makes a data directory, relative to the install prefix; "
        "the system's where not set.",
    )
    build_minutes_max: Annotated[int, Field(ge=1, le=24 * 60)] = 120


class ServerConfig(_Table):
    """A named my.cnf: options of the server, without leading dashes."""

    options: dict[OptionName, OptionValue] = Field(default_factory=dict)


class DatasetPlan(_Table):
    """The tables that a start begins from."""

    tables: Annotated[int, Field(ge=1, le=1000)] = 1
    rows: Annotated[int, Field(ge=1, le=10**9)] = Field(
        default=200_000, description="Rows in each table."
    )


class Suite(_Table):
    """Workloads with their seconds, starts and clients."""

    workloads: Annotated[tuple[str, ...], Field(min_length=1, max_length=200)]
    build: Key = "rel"
    config: Key = "default"
    dataset: Key = "small"
    starts: Annotated[int, Field(ge=2, le=100)] = Field(
        default=3, description="Server starts per side; between-start noise is the largest."
    )
    slices: Annotated[int, Field(ge=1, le=100)] = Field(
        default=2, description="Slices of each workload in each start."
    )
    seconds: Annotated[int, Field(ge=1, le=7200)] = Field(
        default=10, description="Length of one slice."
    )
    warmup_seconds: Annotated[int, Field(ge=0, le=600)] = Field(
        default=2,
        description="Length of one warm-up run; it is repeated until two in a row agree.",
    )
    confirm_starts: Annotated[int, Field(ge=2, le=100)] = Field(
        default=10,
        description="Most starts per side of a paired job; it ends as soon as every workload is "
        "decided.",
    )
    budget_minutes: Annotated[float, Field(gt=0, le=24 * 60)] = Field(
        default=30, description="A paired job begins no further start after so much measuring."
    )
    threads: Annotated[int, Field(ge=1, le=1024)] = 1


class Gates(_Table):
    """The smallest relative loss that matters, per workload."""

    default: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.05, description="0.05 means: a loss of 5 % matters."
    )
    workloads: dict[str, Annotated[float, Field(gt=0, lt=1)]] = Field(default_factory=dict)
    false_alarm_rate: Annotated[float, Field(gt=0, le=0.1)] = Field(
        default=0.001,
        description="Chance that a commit without any change is called a regression.",
    )

    def gate(self, workload: str) -> float:
        """Return the gate of a workload as a fraction."""
        return self.workloads.get(workload, self.default)


class Matrix(_Table):
    """Builds x configs, each compared with the first build under the first config."""

    builds: Annotated[tuple[Key, ...], Field(min_length=1)]
    configs: Annotated[tuple[Key, ...], Field(min_length=1)] = ("default",)
    suite: Key = Field(
        default="commit", description="What to measure; its own build and config do not matter."
    )

    def cells(self) -> tuple[tuple[str, str], ...]:
        """Return (build, config) of every cell, the base first."""
        return tuple(itertools.product(self.builds, self.configs))


class HostPlan(_Table):
    """How machines of one host class place server and client."""

    placement: Literal["shared-core", "disjoint", "disjoint-awake", "unpinned"] | None = Field(
        default=None,
        description="What `forkwatch host calibrate` found quietest where not set; without a "
        "calibration one core for one client, separate cores for several.",
    )


class Notify(_Table):
    """Where alerts go when no code host or chat is configured."""

    alert_folder: Annotated[str, StringConstraints(max_length=1024)] | None = Field(
        default=None, description="Folder for alert files; the service's own where not set."
    )


class Plan(_Table):
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

    def suite(self, name: str) -> Suite:
        """Return the suite called `name`, or raise PlanError with the nearest name."""
        if name not in self.suites:
            raise PlanError(f"no suite {name!r}{_nearest(name, self.suites)}")
        return self.suites[name]

    def build(self, name: str) -> BuildVariant:
        """Return the build variant called `name`, or raise PlanError with the nearest name."""
        if name not in self.builds:
            raise PlanError(f"no build {name!r}{_nearest(name, self.builds)}")
        return self.builds[name]

    def config(self, name: str) -> ServerConfig:
        """Return the server config called `name`, or raise PlanError with the nearest name."""
        if name not in self.configs:
            raise PlanError(f"no config {name!r}{_nearest(name, self.configs)}")
        return self.configs[name]

    def matrix(self, name: str) -> Matrix:
        """Return the matrix called `name`, or raise PlanError with the nearest name."""
        if name not in self.matrices:
            none = "" if self.matrices else "; write a table [matrices.NAME] with its builds"
            raise PlanError(f"no matrix {name!r}{_nearest(name, self.matrices)}{none}")
        return self.matrices[name]


def digest(part: BaseModel) -> str:
    """Return a stable digest of a part of the plan: equal parts, equal digests."""
    text = json.dumps(part.model_dump(mode="json"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


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
        PlanError: Not TOML, an unknown key, a wrong value or a dangling name; the message lists
            every fault on its own line.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{source}: not TOML: {error}") from error
    try:
        plan = Plan.model_validate(data)
    except ValidationError as error:
        lines = [_explain(fault) for fault in error.errors()]
        raise PlanError("\n".join(f"{source}: {line}" for line in lines)) from error
    faults = _dangling_names(plan)
    if faults:
        raise PlanError("\n".join(f"{source}: {fault}" for fault in faults))
    return plan


def _dangling_names(plan: Plan) -> list[str]:
    """Return a line for each name in a suite or gate that nothing defines."""
    faults = []
    for suite_name, suite in plan.suites.items():
        for workload in suite.workloads:
            try:
                find_workload(workload)
            except CatalogError as error:
                faults.append(f"suites.{suite_name}.workloads: {error}")
        for key, value, known in (
            ("build", suite.build, plan.builds),
            ("config", suite.config, plan.configs),
            ("dataset", suite.dataset, plan.datasets),
        ):
            if value not in known:
                faults.append(
                    f"suites.{suite_name}.{key}: nothing is called {value!r}"
                    f"{_nearest(value, known)}"
                )
    for workload in plan.gates.workloads:
        try:
            find_workload(workload)
        except CatalogError as error:
            faults.append(f"gates.workloads: {error}")
    for name, matrix in plan.matrices.items():
        faults += [f"matrices.{name}.{fault}" for fault in _matrix_faults(plan, matrix)]
    return faults


def _matrix_faults(plan: Plan, matrix: Matrix) -> list[str]:
    """Return a line for each name in a matrix that is unknown or there twice, and for its size."""
    faults = []
    for key, names, known in (
        ("builds", matrix.builds, plan.builds),
        ("configs", matrix.configs, plan.configs),
        ("suite", (matrix.suite,), plan.suites),
    ):
        faults += [
            f"{key}: nothing is called {name!r}{_nearest(name, known)}"
            for name in names
            if name not in known
        ]
        faults += [
            f"{key}: {name!r} is there more than once"
            for name in dict.fromkeys(names)
            if names.count(name) > 1
        ]
    cells = len(matrix.cells())
    if cells > MATRIX_CELLS_MAX:
        faults.append(f"builds: {cells} cells with its configs; {too_many_cells()}")
    return faults


def too_many_cells() -> str:
    """Return why a matrix may not be larger, and what to do."""
    return (
        f"at most {MATRIX_CELLS_MAX} fit into a night of one machine at half an hour each; "
        "make two matrices"
    )


def _explain(fault: Any) -> str:
    """Return one validation fault as a line that says what to do."""
    where = ".".join(str(step) for step in fault["loc"])
    if fault["type"] == "extra_forbidden":
        *parents, key = fault["loc"]
        known = _known_keys(parents)
        return f"{where}: unknown key{_nearest(str(key), known)}"
    if fault["type"] == "missing":
        return f"{where}: missing; it has to be set"
    return f"{where}: {fault['msg']} (is {str(fault['input'])[:80]!r})"


def _known_keys(parents: list[int | str]) -> list[str]:
    """Return the keys that the table at `parents` understands."""
    model: type[BaseModel] = Plan
    steps = list(parents)
    while steps:
        field = model.model_fields.get(str(steps.pop(0)))
        if field is None:
            return []
        inner = _table_type(field.annotation)
        if inner is None:
            return []
        if get_origin(field.annotation) is dict and steps:
            steps.pop(0)
        model = inner
    return list(model.model_fields)


def _table_type(annotation: Any) -> type[BaseModel] | None:
    """Return the table class inside an annotation such as `dict[Key, Suite]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in {dict, Union, types.UnionType, Annotated}:
        for argument in get_args(annotation):
            found = _table_type(argument)
            if found is not None:
                return found
    return None


def _nearest(name: str, known: Any) -> str:
    """Return a hint that names the nearest known name, or lists them all."""
    names = [str(item) for item in known]
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; known here: {', '.join(sorted(names))}" if names else ""
