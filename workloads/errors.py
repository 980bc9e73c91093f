"""Errors of the catalog.

CatalogError
├── PlanError             forkwatch.toml is missing, unreadable or wrong
├── StepOutputError       (insert_benchmark_output.py) the client did not say what a step did
├── SysbenchOutputError   (sysbench_output.py) this is no output of a sysbench run that went well
└── UnknownWorkloadError  no such workload; names the nearest one
"""

from __future__ import annotations


class CatalogError(Exception):
    """The plan or a workload name is wrong; the message says what to change."""


class PlanError(CatalogError):
    """forkwatch.toml is missing, unreadable or wrong."""


class UnknownWorkloadError(CatalogError):
    """No such workload."""
