"""Datasets and suites of a plan: what is loaded, and which workloads run on it for how long.

Values only. Whether a workload fits an engine and a dataset is decided in
`workloads/plan_checks.py`, where the whole plan is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal

from pydantic import Field, field_validator, model_validator

from workloads.catalog import SUITES, find_workload
from workloads.errors import CatalogError
from workloads.plan_values import Key, Table
from workloads.workload import DatasetKind

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Keys that mean something for one kind of dataset only.
_ONLY_FOR: Final = {
    "scale": (DatasetKind.TPCC,),
    "value_bytes": (DatasetKind.LSM,),
    "primary_key": (DatasetKind.SYSBENCH,),
    "storage_engine": (DatasetKind.SYSBENCH, DatasetKind.TPCC, DatasetKind.INSERT_BENCHMARK),
}


class DatasetPlan(Table):
    """What a start begins from."""

    joined_later: ClassVar[frozenset[str]] = frozenset(
        {"kind", "storage_engine", "primary_key", "scale", "value_bytes"}
    )
    # Says what is measured on it, and nothing of its bytes.
    not_identity: ClassVar[frozenset[str]] = frozenset({"cached"})

    kind: DatasetKind = Field(
        default=DatasetKind.SYSBENCH,
        description="`sysbench`, `tpcc`, `insert-benchmark` or `lsm`; decides which workloads run.",
    )
    tables: Annotated[int, Field(ge=1, le=1000)] = Field(default=1, description="Equal tables.")
    rows: Annotated[int, Field(ge=1, le=10**9)] = Field(
        default=200_000, description="Rows in each table; keys of a dataset of kind `lsm`."
    )
    storage_engine: Literal["innodb", "rocksdb"] | None = Field(
        default=None, description="Storage engine of the tables; the server's default if not set."
    )
    primary_key: bool = Field(
        default=True, description="Whether the tables of kind `sysbench` have a primary key."
    )
    scale: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=1, description="Warehouses of a dataset of kind `tpcc`."
    )
    value_bytes: Annotated[int, Field(ge=1, le=1024 * 1024)] = Field(
        default=400, description="Bytes of each value of a dataset of kind `lsm`."
    )
    cached: bool = Field(
        default=True,
        description="Whether the data has to fit into this machine's memory; `false` measures "
        "the disk as well.",
    )

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> DatasetPlan:
        faults = []
        for key in sorted(self.model_fields_set):
            kinds = _ONLY_FOR.get(key, (self.kind,))
            if self.kind not in kinds:
                meant = " or ".join(f'"{kind}"' for kind in kinds)
                faults.append(f'{key} needs kind = {meant}, and this one is "{self.kind}"')
        if faults:
            raise ValueError("; ".join(faults))
        return self


class Suite(Table):
    """Workloads with their seconds, starts and clients."""

    joined_later: ClassVar[frozenset[str]] = frozenset({"exact"})

    workloads: Annotated[tuple[str, ...], Field(min_length=1, max_length=200)] = Field(
        description="Names of workloads, or of the catalog's lists such as `full-42`."
    )
    build: Key = Field(default="rel", description="The build variant that is measured.")
    config: Key = Field(default="default", description="The server config that it runs under.")
    dataset: Key = Field(default="small", description="The dataset that each start begins from.")
    starts: Annotated[int, Field(ge=2, le=100)] = Field(
        default=3, description="Server starts per side; between-start noise is the largest."
    )
    slices: Annotated[int, Field(ge=1, le=100)] = Field(
        default=2, description="Slices of each workload in each start."
    )
    seconds: Annotated[int, Field(ge=1, le=7200)] = Field(
        default=10, description="Length of one slice."
    )
    turn_ms: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=250,
        description="The sides of a pair take turns of so many milliseconds within a slice; 0: "
        "one slice after the other.",
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
    exact: Annotated[tuple[str, ...], Field(max_length=50)] = Field(
        default=(),
        description="Cases of exact counters that a pair compares after its last start.",
    )
    threads: Annotated[int, Field(ge=1, le=1024)] = Field(
        default=1, description="Connections that run the workload at once."
    )

    @field_validator("workloads", mode="after")
    @classmethod
    def _spelt_out(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return spelt_out(names)


def spelt_out(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names with every built-in list replaced by its workloads, each once.

    A workload may be called by several names; the one that its series are kept under is returned.
    """
    every = (one for name in names for one in SUITES.get(name, (name,)))
    return tuple(dict.fromkeys(series_name(name) for name in every))


def series_name(name: str) -> str:
    """Return the name of a workload that its series are kept under; unknown ones stay as they are.

    Whoever checks the whole plan says what is unknown, and where.
    """
    try:
        return find_workload(name).name
    except CatalogError:
        return name
