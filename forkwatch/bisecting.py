"""Finding the commit that changed a workload, on this machine: the work of `forkwatch bisect`.

A question and what is there already come in; job follows job until `bisects.search` has an answer,
and a bisect document goes out. A culprit that is a merge is followed by a search among what it
merged.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace
from importlib.metadata import version
from statistics import median
from typing import TYPE_CHECKING, Final

from bisects.document import BisectEnd, CommitState
from bisects.search import Search
from forkwatch.bisect_jobs import observe, refuse_failing_host
from forkwatch.bisect_range import merged_range
from forkwatch.errors import DoorError
from reports.numbers import short
from runner import checkout

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import TypeAlias

    from bisects.document import BisectDocument, Observation
    from forkwatch.bisect_jobs import Measure
    from forkwatch.bisect_question import Asked
    from results.document import Artifact

    Tell: TypeAlias = Callable[[BisectDocument], None]
    #: Does a whole search, after the one that led to it.
    Searched: TypeAlias = Callable[[Asked, BisectDocument], BisectDocument]

_log = logging.getLogger("forkwatch.bisect")

#: First guess at what a job takes besides its slices: restoring data, starting and stopping two
#: servers, looking at the canary. Learnt after the first job.
BESIDE_SLICES_S: Final = 30.0
#: First guess at a build while the cache holds none.
BUILD_S: Final = 600.0
#: Minutes of the budget that have to be left for a search to be begun within a merge: a job takes
#: about as long where everything is built.
LEFT_MIN: Final = 1.0


def search_of(
    asked: Asked,
    artifacts: Mapping[str, Artifact],
    known: Sequence[Observation] = (),
    *,
    outside: Collection[str] = (),
    noise: tuple[float, int] = (0.0, 0),
) -> Search:
    """Return the search, knowing which commits are built and what was observed before.

    Args:
        asked: The question.
        artifacts: Those that are there, by the hash of their commit.
        known: What was observed before.
        outside: Source files that neither end's server is made of.
        noise: Of one start's log ratio on this machine, with its degrees of freedom.
    """
    plan, question = asked.plan, asked.question
    suite = plan.suite(question.suite)
    builds = [facts.build_seconds for facts in artifacts.values()]
    per_side = suite.slices * suite.seconds + suite.warmup_seconds
    return Search(
        question,
        asked.range.commits,
        engine=plan.fork.engine,
        tool_version=version("forkwatch"),
        build_seconds=median(builds) if builds else BUILD_S,
        measure_seconds=2 * asked.starts_each * per_side + BESIDE_SLICES_S,
        built=artifacts.keys(),
        known=known,
        starts_each=asked.starts_each,
        storage_engine=asked.storage_engine,
        outside=outside,
        noise_sd=noise[0],
        noise_df=noise[1],
    )


def run(
    asked: Asked,
    search: Search,
    *,
    measure: Measure,
    tell: Tell,
    sources: Callable[[], Collection[str]] = tuple,
) -> BisectDocument:
    """Search until there is an answer or an end, telling how it stands after every job.

    Args:
        asked: The question.
        search: As far as it is.
        measure: Does a job.
        tell: Told after every job.
        sources: Asked once both ends are built: the source files that neither is made of.

    Raises:
        DoorError: The good end does not build.
        UnstableHostError: The host cannot be trusted.
    """
    last = len(asked.range.commits) - 1
    jobs = Counter(observation.commit for observation in search.document().observations)
    while (order := search.next()) is not None:
        before = search.document().observations
        observation = observe(asked, order, number=jobs[order.commit], measure=measure)
        refuse_failing_host(before, observation)
        search.take(observation)
        jobs[order.commit] += 1
        both_built = order.commit == last and observation.state is not CommitState.BROKEN
        if both_built and jobs[last] == 1:
            search.inform(sources())
        tell(search.document())
    return search.document()


def into_merges(
    asked: Asked, found: BisectDocument, searched: Searched
) -> tuple[BisectDocument, list[str]]:
    """Return a bisect with the search among what its culprit merged, and what is left to be asked.

    A culprit within the merge that is a merge itself is followed in turn.
    """
    inner = merged_question(asked, found)
    if inner is None:
        return found, merged_commands(asked, found)
    try:
        inside = searched(inner, found)
    except DoorError as error:
        # The merge is the answer all the same.
        _log.warning("what %s merged is not searched: %s", short(inner.question.bad), error)
        return found, merged_commands(asked, found)
    below, commands = into_merges(inner, inside, searched)
    return found.model_copy(update={"merged": below}), commands


def merged_question(asked: Asked, found: BisectDocument) -> Asked | None:
    """Return the question about what the culprit merged, if it merged and there is time left."""
    place = _named(found)
    left = found.question.budget_minutes - found.minutes_spent
    if place is None or len(asked.range.parents[place]) == 1 or left < LEFT_MIN:
        return None
    inside = merged_range(asked.repository, found.commits[place].sha)
    if inside is None:
        return None
    ends = {"good": inside.commits[0].sha, "bad": inside.commits[-1].sha, "budget_minutes": left}
    return replace(asked, question=asked.question.model_copy(update=ends), range=inside)


def merged_commands(asked: Asked, document: BisectDocument) -> list[str]:
    """Return the commands that search what the culprit merged, if it is a merge."""
    place = _named(document)
    if place is None:
        return []
    main, *merged = asked.range.parents[place]
    commands = []
    for parent in merged:
        base = checkout.merge_base(asked.repository, main, parent)
        if base != parent:
            words = f"forkwatch bisect {short(base)} {short(parent)}"
            commands.append(f"{words} --workload '{asked.question.workload}'")
    return commands


def _named(document: BisectDocument) -> int | None:
    """Return the place of the one commit that a search of its own names."""
    only = document.culprits if document.end is BisectEnd.CULPRIT else ()
    return only[0] if len(only) == 1 and only[0] else None
