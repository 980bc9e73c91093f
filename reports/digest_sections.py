"""The weekly digest in words: a headline, and sections of short items in plain text.

A `Digest` comes in, text goes out as it came, unescaped: subjects and names of workloads are
anybody's. Writers of Markdown, terminals and pages make it inert for themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reports.markup import one_line
from reports.numbers import detectable_percent, loss_percent, percent, plain, short
from reports.sentence import NAMED_MAX

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import date

    from detectors.change import Interval
    from reports.digest import (
        AlertItem,
        Digest,
        Drifted,
        EndedBisect,
        HostHealth,
        MachineTime,
        MovedCommit,
        NoisyWorkload,
        Reference,
        Standing,
    )

#: Items of one section; a longer list is a page's business.
ITEMS_MAX: Final = 10
#: Of a fork in a headline; the rest of the line still fits a screen.
_FORK_LENGTH_MAX: Final = 60
_HOUR: Final = 3600
_MINUTE: Final = 60
#: Not by `strftime`, whose months follow the locale.
_MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


@dataclass(frozen=True, kw_only=True)
class Item:
    """One line of a section, unescaped, and what it is about."""

    text: str
    #: What a reader may skip; empty where there is none.
    detail: str = ""
    #: At most one of them is set; a page links it.
    alert: str = ""
    bisect: str = ""
    commit: str = ""
    workload: str = ""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading in our own words, and its items."""

    title: str
    items: tuple[Item, ...]


def headline(digest: Digest) -> str:
    """Return the digest in one line; where nothing is to say, this is all of it."""
    so_far = " so far" if digest.so_far else ""
    name = f"{one_line(digest.fork, length_max=_FORK_LENGTH_MAX)}, week {digest.week}{so_far}"
    if digest.quiet:
        return f"{name}: nothing to say; {_followed(digest)}."
    counts = [
        _some(len(digest.slower), "commit slower", "commits slower"),
        _some(len(digest.faster), "commit faster", "commits faster"),
        _some(len(digest.drifted), "drift that no gate saw", "drifts that no gate saw"),
        "series begin anew" if digest.began_anew else "",
        _some(len(digest.open_alerts), "alert open", "alerts open"),
        _some(len(digest.bisects), "bisect ended", "bisects ended"),
        _some(len(digest.fixed), "fixed", "fixed"),
        _some(len(digest.accepted), "accepted", "accepted"),
        _some(len(digest.false_alarms), "false alarm", "false alarms"),
        _some(len(digest.noisy), "workload too noisy", "workloads too noisy"),
        _some(len(digest.hosts), "host in trouble", "hosts in trouble"),
    ]
    return f"{name}: {', '.join(count for count in counts if count)}"


def span(digest: Digest) -> str:
    """Return the days of the week, whose days they are, and how many commits came."""
    first, last = digest.first_day, digest.last_day
    begin = f"{_day(first)} {first.year}"
    if first.year == last.year:
        begin = str(first.day) if first.month == last.month else _day(first)
    came = _some(digest.commits_seen, "commit came", "commits came") or "no commit came"
    return f"{begin} to {_day(last)} {last.year} ({digest.zone}); {came} to {digest.branch}."


def sections(digest: Digest) -> tuple[Section, ...]:
    """Return what there is to say, the most urgent first; nothing where the week was quiet."""
    if digest.quiet:
        return ()
    told = {commit.sha for commit in digest.slower}
    found = (
        _listed("Slower", [_moved(commit) for commit in digest.slower]),
        _listed("Faster", [_moved(commit) for commit in digest.faster]),
        _standings(digest.reference),
        _listed("Drift that no gate saw", [_drifted(one) for one in digest.drifted]),
        _listed("Series that begin anew", [Item(text=said) for said in digest.began_anew]),
        _listed("Open alerts", [_open_alert(alert, told=told) for alert in digest.open_alerts]),
        _listed("Bisects", [_bisect(one) for one in digest.bisects]),
        _listed("Fixed", [_closed_alert(alert) for alert in digest.fixed]),
        _listed("Accepted", [_closed_alert(alert) for alert in digest.accepted]),
        _false_alarms(digest),
        _listed("Too noisy to gate", _noisy(digest.noisy)),
        Section(title="Machine time", items=tuple(_machine_time(digest.machine_time))),
        _listed("Hosts", [_host(host) for host in digest.hosts]),
    )
    return tuple(section for section in found if section.items)


def _listed(title: str, items: Sequence[Item]) -> Section:
    """Return a section with the first items, and how many there are beside them."""
    shown = tuple(items[:ITEMS_MAX])
    more = len(items) - len(shown)
    return Section(title=title, items=(*shown, Item(text=f"and {more} more")) if more else shown)


def _moved(commit: MovedCommit) -> Item:
    return Item(text=commit.sentence, detail=_by(commit.subject, commit.author), commit=commit.sha)


def _standings(reference: Reference | None) -> Section:
    """Return where the workloads stand against an old commit; empty where nothing was compared."""
    if reference is None or not (reference.standings or reference.same):
        return Section(title="", items=())
    what = "the chosen commit" if reference.chosen else "the first commit measured"
    items = list(_listed("", [_standing(one) for one in reference.standings]).items)
    if reference.same:
        known = "no difference shown" if reference.standings else "no difference shown on any"
        items.append(Item(text=f"{_some(reference.same, 'workload', 'workloads')}: {known}"))
    if reference.absent:
        absent = _some(reference.absent, "workload", "workloads")
        items.append(Item(text=f"{absent}: not measured then, or not under the same conditions"))
    if reference.subject:
        # Somebody's words are an item, never part of a heading.
        items.insert(0, Item(text="That is", detail=reference.subject, commit=reference.sha))
    return Section(title=f"Since {short(reference.sha)}, {what}", items=tuple(items))


def _standing(one: Standing) -> Item:
    word = "slower" if one.effect < 0 else "faster"
    return Item(
        text=f"{_named(one.workload, one.setting)} is {_size(one.effect)} {word} "
        f"{_ends(one.effect, one.interval)}",
        workload=one.workload,
    )


def _drifted(one: Drifted) -> Item:
    verb = "lost" if one.effect < 0 else "gained"
    size = (
        f"{_named(one.workload, one.setting)} {verb} {_size(one.effect)} "
        f"{_ends(one.effect, one.interval)}"
    )
    seen = f"{one.commits} commits since {short(one.since)}"
    if one.step_at is not None:
        detail = f"a step that no verdict named, seen over {seen}"
        return Item(text=f"{size} at {short(one.step_at)}", detail=detail, commit=one.step_at)
    each = abs(loss_percent(one.effect / one.commits))
    return Item(text=f"{size} over {seen}", detail=f"{each:.2f} % a commit", workload=one.workload)


def _open_alert(alert: AlertItem, *, told: Collection[str]) -> Item:
    """Return an open alert; the words of a commit that was told of above are not said again."""
    age = _some(alert.days, "day", "days") or "new"
    # Confirmed is what every alert is that nobody has touched.
    state = "" if alert.state == "confirmed" else f", {alert.state}"
    owner = alert.owner or "nobody's"
    due = f", {'was due' if alert.overdue else 'due'} {alert.due}" if alert.due else ""
    return Item(
        text=f"{age}, {owner}{state}{due}: {alert.sentence}",
        detail="" if alert.sha in told else _by(alert.subject, alert.author),
        alert=alert.id,
    )


def _bisect(one: EndedBisect) -> Item:
    """Return what a search came to, and what it searched."""
    said = one.said.rstrip(".") or "no answer"
    commits = _some(one.commits, "commit", "commits")
    return Item(
        text=said if one.state == "over" else f"{one.state}: {said}",
        detail=f"{one.workload} in ({short(one.good)}, {short(one.bad)}], {commits}",
        bisect=one.id,
    )


def _closed_alert(alert: AlertItem) -> Item:
    after = _some(alert.days, "day", "days")
    return Item(
        text=f"{alert.sentence}, {f'after {after}' if after else 'within a day'}",
        detail=_by(alert.subject, alert.author),
        alert=alert.id,
    )


def _false_alarms(digest: Digest) -> Section:
    """Return the false alarms, and how often alerts were right where anybody has said so."""
    listed = _listed("False alarms", [_closed_alert(alert) for alert in digest.false_alarms])
    found = digest.precision
    judged = found.true + found.false if found else 0
    if found is None or not judged:
        return listed
    real = _some(found.true, "was real", "were real") or "none was real"
    said = f"Of {_some(judged, 'alert', 'alerts')} that people judged so far, {real}"
    # Without a false alarm in this week, how often there is one is still worth a line.
    title = listed.title if listed.items else "Precision"
    return Section(title=title, items=(*listed.items, Item(text=said)))


def _noisy(found: Sequence[NoisyWorkload]) -> list[Item]:
    """Return the noisy workloads; those that the same would help are one item."""
    alike: dict[tuple[float, tuple[str, ...]], list[NoisyWorkload]] = {}
    for one in found:
        alike.setdefault((one.gate, one.advice), []).append(one)
    return [_as_noisy(group) for group in alike.values()]


def _as_noisy(group: Sequence[NoisyWorkload]) -> Item:
    """Return workloads of one gate and one advice as an item."""
    names = [_named(one.workload, one.setting) for one in group]
    more = len(names) - NAMED_MAX
    named = ", ".join(names[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
    seen = sorted({plain(detectable_percent(one.detectable_effect)) for one in group}, key=float)
    ends = seen[0] if len(seen) == 1 else f"{seen[0]} to {seen[-1]}"
    verb, whose = ("shows", "its") if len(names) == 1 else ("show", "their")
    return Item(
        text=f"{named} {verb} losses from {ends} % on, {whose} gate is "
        f"{percent(100 * group[0].gate)}",
        detail="; ".join(group[0].advice),
        workload=group[0].workload if len(names) == 1 else "",
    )


def _machine_time(used: MachineTime) -> Iterator[Item]:
    """Give what machines did, and what came of it."""
    if not used.seconds:
        return
    kinds = (
        (used.single_seconds, "on single commits"),
        (used.confirm_seconds, "on pairs"),
        (used.pull_seconds, "on pull requests"),
        (used.bisect_seconds, "on bisects"),
    )
    spent = [(seconds, what) for seconds, what in kinds if seconds]
    parts = [f"{_hours(seconds)} {what}" for seconds, what in spent]
    if len(spent) == 1:
        parts = [f"all {what}" for _, what in spent]
    if used.wasted_seconds:
        parts.append(f"{_hours(used.wasted_seconds)} of it in runs that could not be judged")
    yield Item(text=_hours(used.seconds), detail=", ".join(parts))
    yield Item(text="It bought", detail=", ".join(_bought(used)))


def _bought(used: MachineTime) -> Iterator[str]:
    """Give what came of the commits that were finished, the most telling first."""
    followed = _some(sum(used.outcomes.values()), "commit followed", "commits followed")
    if followed or not (used.pulls or used.culprits):
        yield followed or "no verdict"
    for outcome, one, many in (
        ("regression", "regression", "regressions"),
        ("improvement", "improvement", "improvements"),
        ("no-change", "shown unchanged", "shown unchanged"),
        ("inconclusive", "inconclusive", "inconclusive"),
        ("unchanged", "with the same files as before", "with the same files as before"),
        ("build-failed", "not built", "not built"),
        ("unstable", "on an unstable host", "on an unstable host"),
        ("failed", "failed", "failed"),
    ):
        if count := used.outcomes.get(outcome, 0):
            yield _some(count, one, many)
    if used.confirms:
        yield (
            f"{_some(used.confirms, 'suspicion', 'suspicions')} measured again, "
            f"{used.cleared or 'none'} of them cleared"
        )
    if used.pulls:
        yield (
            f"{_some(used.pulls, 'pull request', 'pull requests')} judged, "
            f"{used.pulls_slower or 'none'} of them slower"
        )
    if used.culprits:
        yield _some(used.culprits, "commit named by a bisect", "commits named by bisects")


def _host(host: HostHealth) -> Item:
    return Item(text=f"{host.name} (class {host.host_class})", detail="; ".join(host.troubles))


def _followed(digest: Digest) -> str:
    """Return what a quiet week was made of."""
    used = digest.machine_time
    followed = sum(used.outcomes.values())
    if not followed and not used.seconds:
        return "no commit came" if not digest.commits_seen else "no commit was finished"
    commits = _some(followed, "commit", "commits") or "no commit"
    pulls = _some(used.pulls, "pull request", "pull requests")
    judged = f" and {pulls} judged" if pulls else ""
    return f"{commits} followed{judged} in {_hours(used.seconds, of='machine ')}"


def _day(day: date) -> str:
    return f"{day.day} {_MONTHS[day.month - 1]}"


def _named(workload: str, setting: str) -> str:
    return f"{workload} ({setting})" if setting else workload


def _size(effect: float) -> str:
    """Return the size without its sign; the words around it say which way."""
    return percent(abs(loss_percent(effect)))


def _ends(effect: float, interval: Interval) -> str:
    """Return the interval in the direction of the effect, such as "(95 %: 8.2 to 10.0)"."""
    sign = 1 if effect < 0 else -1
    ends = sorted(sign * loss_percent(end) for end in (interval.low, interval.high))
    return f"({interval.confidence * 100:g} %: {plain(ends[0])} to {plain(ends[1])})"


def _by(subject: str, author: str) -> str:
    # Git's authors come with an address, which is nobody's business in a chat.
    name = author.partition(" <")[0]
    if not name:
        return subject
    return f"{subject}, by {name}" if subject else f"by {name}"


def _some(count: int, one: str, many: str) -> str:
    """Return a counted noun; nothing where there is none."""
    return f"{count} {one if count == 1 else many}" if count else ""


def _hours(seconds: float, *, of: str = "") -> str:
    """Return a duration in hours, or in minutes where a tenth of an hour says too little."""
    if seconds < _HOUR:
        return f"{seconds / _MINUTE:.0f} {of}minutes"
    return f"{seconds / _HOUR:.1f} {of}hours"
