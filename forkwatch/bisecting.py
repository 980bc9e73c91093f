"""Finding the commit that changed a workload, on this machine: the work of `forkwatch bisect`.

A question and what is there already come in; job follows job until `bisects.search` has an answer,
and a bisect document goes out.
"""

from __future__ import annotations

from collections import Counter
from importlib.metadata import version
from statistics import median
from typing import TYPE_CHECKING, Final

from bisects.search import Search
from forkwatch.bisect_jobs import observe
from reports.numbers import short
from runner import checkout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from bisects.document import BisectDocument, Observation
    from forkwatch.bisect_jobs import Measure
    from forkwatch.bisect_question import Asked
    from results.document import Artifact

    Tell: TypeAlias = Callable[[BisectDocument], None]

#: First guess at what a job takes besides its slices: restoring data, starting and stopping two
#: servers, looking at the canary. Learnt after the first job.
BESIDE_SLICES_S: Final = 30.0
#: First guess at a build while the cache holds none.
BUILD_S: Final = 600.0


def search_of(
    asked: Asked, artifacts: Mapping[str, Artifact], known: Sequence[Observation] = ()
) -> Search:
    """Return the search, knowing which commits are built and what was observed before."""
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
    )


def run(asked: Asked, search: Search, *, measure: Measure, tell: Tell) -> BisectDocument:
    """Search until there is an answer or an end, telling how it stands after every job.

    Raises:
        DoorError: The good end does not build.
        UnstableHostError: The host cannot be trusted.
    """
    jobs = Counter(observation.commit for observation in search.document().observations)
    while (order := search.next()) is not None:
        search.take(observe(asked, order, number=jobs[order.commit], measure=measure))
        jobs[order.commit] += 1
        tell(search.document())
    return search.document()


def merged_commands(asked: Asked, document: BisectDocument) -> list[str]:
    """Return the commands that search what the culprit merged, if it is a merge."""
    if len(document.culprits) != 1 or not document.culprits[0]:
        return []
    main, *merged = asked.range.parents[document.culprits[0]]
    commands = []
    for parent in merged:
        base = checkout.merge_base(asked.repository, main, parent)
        if base != parent:
            words = f"forkwatch bisect {short(base)} {short(parent)}"
            commands.append(f"{words} --workload '{asked.question.workload}'")
    return commands
