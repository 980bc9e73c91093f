"""The log of a runner that does one job for a service: every line says which commit and job.

A job order comes in; the form of the lines is the service's, whose environment the runner has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from results.log_lines import LogForm, Subject, opened_handlers, write_lines
from workloads.errors import CatalogError
from workloads.plan import parse_plan

if TYPE_CHECKING:
    from results.job import JobOrder


class LogSettings(BaseSettings):
    """How a runner writes its log."""

    model_config = SettingsConfigDict(env_prefix="FORKWATCH_", extra="ignore")

    log_format: LogForm = Field(default="text", description="Form of the log's lines.")


def open_job_log(order: JobOrder) -> None:
    """Write the log of this process as one about a job's commit."""
    try:
        fork = parse_plan(order.plan).fork.name
    except CatalogError:
        # Whoever does the job says so, and better.
        fork = order.repository.name
    write_lines(
        opened_handlers(),
        LogSettings().log_format,
        secrets=[order.credential.get_secret_value()] if order.credential else (),
        otherwise=Subject.of(fork=fork, sha=order.candidate, job=order.job),
    )
