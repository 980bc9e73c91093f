"""What the pages about hosts show, gathered from the store in one reading transaction.

A session, the time and how often hosts are checked come in; frozen values go out, which the
templates only lay out.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reports.numbers import percent, plain, short
from service.core.hosts import Spread
from service.flows import host_noise
from service.flows.aa_judging import difference_words
from service.store import aa_checks, hosts, runs
from service.web.addresses import commit_path
from service.web.alert_lines import age
from service.web.sparklines import sparkline

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from service.core.aa_checks import AaCheck, AaResult, AaSchedule
    from service.core.hosts import CanaryRecord, Host, HostNoise, NoiseRecord, UsualNoise
    from service.web.sparklines import Sparkline

#: Readings of a run's canary: three loads before and three after.
NEWEST_READINGS: Final = 20
#: Checks of a host that its page lists: a quarter of a year of one each week.
CHECKS_SHOWN: Final = 12


@dataclass(frozen=True, kw_only=True)
class LastJob:
    """The newest job whose run a host brought."""

    words: str
    link: str
    sha: str


@dataclass(frozen=True, kw_only=True)
class AaLine:
    """One A/A check in a few words."""

    check: AaCheck
    words: str
    ended: str
    link: str

    @property
    def differed(self) -> bool:
        """Whether it called equals different."""
        return bool(self.check.alarms)


@dataclass(frozen=True, kw_only=True)
class AaNoise:
    """What checks showed of one workload."""

    result: AaResult
    #: One copy against the other.
    difference: str
    #: Between starts of the log ratio, over the checks that may be pooled, in percent.
    between_pairs: str
    #: The smallest loss within sight, and the one that the plan's gate is about.
    sees: str
    gate: str


@dataclass(frozen=True, kw_only=True)
class HostLine:
    """A host on the list."""

    host: Host
    #: How long ago it brought its newest run.
    seen: str
    #: None where it was not kept which that was.
    last: LastJob | None
    #: Runs by how they ended, in words.
    runs: str
    #: Of the newest run that had one.
    canary: tuple[CanaryRecord, ...]
    #: How long ago that was; empty without one.
    canary_age: str
    #: The newest check that it measured; None without one.
    check: AaLine | None
    #: Lowest and highest noise of its workloads in that check; empty without one.
    noise: str

    @property
    def suspicious(self) -> bool:
        """Whether the host was not what it usually is."""
        return any(reading.suspicious for reading in self.canary)


@dataclass(frozen=True, kw_only=True)
class ClassLine:
    """A host class, and where its A/A checks stand."""

    name: str
    hosts: int
    words: str


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
    #: Of the newest check of the host as it is now.
    aa: tuple[AaNoise, ...]
    #: Checks that may be pooled with that one, itself included.
    pooled: int
    checks: tuple[AaLine, ...]


def host_lines(session: Session, *, now: datetime) -> list[HostLine]:
    """Return every host, by class and name."""
    found = []
    for host in hosts.everything(session):
        readings = hosts.canary(session, host, limit=NEWEST_READINGS)
        checks = aa_checks.measured_on(session, host.host_class, host.name, limit=1)
        found.append(_host_line(session, host, readings, checks, now=now))
    return found


def class_lines(
    session: Session, lines: Sequence[HostLine], schedule: AaSchedule, *, now: datetime
) -> list[ClassLine]:
    """Return every host class that measures, by name, and the one that the service measures on."""
    counts = {schedule.host_class: 0} if schedule.host_class else {}
    for line in lines:
        counts[line.host.host_class] = counts.get(line.host.host_class, 0) + 1
    return [
        ClassLine(name=name, hosts=count, words=_standing(session, name, schedule, now=now))
        for name, count in sorted(counts.items())
    ]


def host_part(session: Session, noise: HostNoise, *, now: datetime) -> HostPart:
    """Return what is known of a host in one of its classes."""
    host = noise.host
    present: dict[str, list[NoiseRecord]] = defaultdict(list)
    for one in noise.history:
        if one.fingerprint == host.fingerprint:
            present[one.noise.workload].append(one)
    checks = aa_checks.measured_on(session, host.host_class, host.name, limit=CHECKS_SHOWN)
    alike = [one for one in checks if one.results and _as_it_is(one, host)]
    return HostPart(
        line=_host_line(session, host, noise.canary, checks, now=now),
        noise=tuple(
            NoiseLine(usual=usual, line=_noise_line(present[usual.workload]))
            for usual in noise.usual
        ),
        aa=tuple(_aa_noise(one, alike) for one in (alike[0].results if alike else ())),
        pooled=len(alike),
        checks=tuple(_aa_line(one, now=now) for one in checks),
    )


def _host_line(
    session: Session,
    host: Host,
    readings: Sequence[CanaryRecord],
    checks: Sequence[AaCheck],
    *,
    now: datetime,
) -> HostLine:
    newest = readings[-1] if readings else None
    of_newest = tuple(one for one in readings if newest is not None and one.run == newest.run)
    return HostLine(
        host=host,
        seen=_ago(host.last_seen_at, now),
        last=_last_job(session, host.last_run),
        runs=", ".join(f"{count} {outcome.value}" for outcome, count in sorted(host.runs.items())),
        canary=of_newest,
        canary_age=_ago(newest.at, now) if newest else "",
        check=_aa_line(checks[0], now=now) if checks else None,
        noise=_range(checks[0].results) if checks and _as_it_is(checks[0], host) else "",
    )


def _as_it_is(check: AaCheck, host: Host) -> bool:
    """Whether a check is of the host as it is now."""
    return check.fingerprint == host.fingerprint


def _last_job(session: Session, run_id: str | None) -> LastJob | None:
    if run_id is None:
        return None
    run = runs.find(session, run_id)
    if run is not None:
        words = f"{run.kind.value}: {run.outcome.value}"
        return LastJob(words=words, link=commit_path(run.fork, run.sha), sha=short(run.sha))
    check = aa_checks.by_run(session, run_id)
    if check is None:
        return None
    link = commit_path(check.fork, check.sha)
    return LastJob(words=f"A/A check: {check.state.value}", link=link, sha=short(check.sha))


def _aa_line(check: AaCheck, *, now: datetime) -> AaLine:
    if check.open:
        words = "under way" if check.started_at else "waits"
    elif check.alarms:
        words = f"{len(check.alarms)} of {len(check.results)} differed"
    elif check.results:
        fit = sum(one.fits for one in check.results)
        words = f"fit for {fit} of {len(check.results)} gates"
    else:
        words = "no numbers"
    return AaLine(
        check=check,
        words=words,
        ended=_ago(check.finished_at or check.created_at, now),
        link=commit_path(check.fork, check.sha),
    )


def _standing(session: Session, name: str, schedule: AaSchedule, *, now: datetime) -> str:
    """Return where the A/A checks of a host class stand, in one sentence."""
    found = aa_checks.newest(session, name, limit=1)
    last = found[0] if found else None
    if last is not None and last.open:
        asked = f"asked for by {last.asked_by} {_ago(last.created_at, now)}"
        if last.started_at is None:
            return f"An A/A check waits until nothing else does, {asked}."
        return f"An A/A check is under way, {asked}."
    if last is None:
        before = "No A/A check was made yet."
    else:
        ended = _ago(last.finished_at or last.created_at, now)
        before = f"Last A/A check {ended}: {last.said}."
    if name != schedule.host_class:
        return before
    if not schedule.days:
        return f"{before} None is scheduled."
    if schedule.due(last, now=now):
        return f"{before} The next is due."
    assert last is not None, "a first check is due at once"
    return f"{before} The next is due {schedule.next_after(last):%Y-%m-%d}."


def _aa_noise(result: AaResult, alike: Sequence[AaCheck]) -> AaNoise:
    """Return a workload's result with the noise of all checks that are comparable with it."""
    same = [one for check in alike for one in check.results if one.workload == result.workload]
    spread = host_noise.pooled(
        [Spread(sd=one.sd, df=one.starts - 1) for one in same if one.sd is not None]
    )
    sees = result.sees_percent
    return AaNoise(
        result=result,
        difference=difference_words(result).removeprefix(f"{result.workload} "),
        between_pairs=plain(100 * spread.sd) if spread.known else "",
        sees=percent(sees) if sees is not None else "no loss at all",
        gate=percent(100 * result.gate),
    )


def _range(results: Sequence[AaResult]) -> str:
    """Return the lowest and the highest noise between pairs, in percent."""
    seen = [100 * one.sd for one in results if one.sd is not None]
    if not seen:
        return ""
    least, most = plain(min(seen)), percent(max(seen))
    return most if f"{least} %" == most else f"{least} to {most}"


def _ago(at: datetime, now: datetime) -> str:
    return f"{age(now - at)} ago"


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
