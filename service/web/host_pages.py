"""The pages about hosts: which machines measure, what their canaries said, how noisy they are.

A database comes in, a router goes out. What is usual on a host is worked out by
`flows.host_noise`, from runs of its present fingerprint alone.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Path

from service.core.errors import NotFoundError
from service.flows import host_noise
from service.store import hosts
from service.web.rendering import PageRoute, render_page
from service.web.sparklines import sparkline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastapi.responses import HTMLResponse
    from sqlalchemy.orm import Session

    from service.core.hosts import CanaryRecord, Host, HostNoise, NoiseRecord, UsualNoise
    from service.store.database import Database
    from service.web.sparklines import Sparkline

#: Readings of a run's canary: three loads before and three after.
_NEWEST_READINGS: Final = 20
_NAME_LENGTH_MAX: Final = 200
_Name = Annotated[str, Path(max_length=_NAME_LENGTH_MAX, pattern=r"^[^\x00]+$")]


@dataclass(frozen=True, kw_only=True)
class HostLine:
    """A host on the list."""

    host: Host
    #: Runs by how they ended, in words.
    runs: str
    #: Of the newest run.
    canary: tuple[CanaryRecord, ...]

    @property
    def suspicious(self) -> bool:
        """Whether the host was not what it usually is."""
        return any(reading.suspicious for reading in self.canary)


@dataclass(frozen=True, kw_only=True)
class NoiseLine:
    """What a workload usually shows on a host, and how that came about."""

    usual: UsualNoise
    #: Between starts, run by run.
    line: Sparkline | None


@dataclass(frozen=True, kw_only=True)
class HostPart:
    """A host in one of its classes."""

    line: HostLine
    noise: tuple[NoiseLine, ...]


def host_pages_router(database: Database) -> APIRouter:
    """Return the router of the pages about hosts."""
    router = APIRouter(route_class=PageRoute, include_in_schema=False)

    @router.get("/hosts")
    def everything() -> HTMLResponse:
        with database.reading() as session:
            lines = [_line(session, host) for host in hosts.everything(session)]
            return render_page("hosts.html", lines=lines)

    @router.get("/hosts/{name}")
    def one(name: _Name) -> HTMLResponse:
        with database.reading() as session:
            found = host_noise.of_host(
                session,
                name,
                host_class=None,
                workload=None,
                limit=hosts.RECORDS_MAX,
                readings=_NEWEST_READINGS,
            )
            if not found:
                raise NotFoundError(f"No host called {name} has sent a run here.")
            parts = [_part(noise) for noise in found]
            return render_page("host.html", name=name, parts_of_host=parts)

    return router


def _line(session: Session, host: Host) -> HostLine:
    return _host_line(host, hosts.canary(session, host, limit=_NEWEST_READINGS))


def _host_line(host: Host, readings: Sequence[CanaryRecord]) -> HostLine:
    newest = readings[-1].run if readings else None
    return HostLine(
        host=host,
        runs=", ".join(f"{count} {outcome.value}" for outcome, count in sorted(host.runs.items())),
        canary=tuple(reading for reading in readings if reading.run == newest),
    )


def _part(noise: HostNoise) -> HostPart:
    present: dict[str, list[NoiseRecord]] = defaultdict(list)
    for one in noise.history:
        if one.fingerprint == noise.host.fingerprint:
            present[one.noise.workload].append(one)
    return HostPart(
        line=_host_line(noise.host, noise.canary),
        noise=tuple(
            NoiseLine(usual=usual, line=_noise_line(present[usual.workload]))
            for usual in noise.usual
        ),
    )


def _noise_line(records: Sequence[NoiseRecord]) -> Sparkline | None:
    """Return how the scatter between starts went, in percent."""
    seen = [
        100 * record.noise.between_starts.sd
        for record in records
        if record.noise.between_starts.known
    ]
    if not seen:
        return None
    least, most = min(seen), max(seen)
    return sparkline(
        seen, label=f"{len(seen)} runs, from {least:.1f} to {most:.1f} %, newest {seen[-1]:.1f} %"
    )
