"""A real bisect: `python -m benchmarks.bisect.real`, on a long branch of the demo's fork.

Most commits differ in a file that is installed and never read, some touch documentation alone, some
do not compile, and from one on every row of a scan costs a little more. The verb itself is run, and
what it did is counted: jobs, starts, builds, minutes. Nothing else should run beside it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.detection.row import markdown
from benchmarks.instrument.knob_fork import Knobs, knob_fork
from bisects.document import BisectDocument, CommitState
from reports.bisect import bisect_sentence
from runner import shell

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER: Final = Path(".forkwatch") / "bench" / "bisect"
#: Of ten commits, which do not compile and which are documentation.
BROKEN: Final = (4,)
NOTES: Final = (2, 7)
TIMEOUT_S: Final = 4 * 3600
HEADINGS: Final = ("range", "answer", "right", "jobs", "starts", "builds", "minutes", "effect")


def main() -> None:
    """Make the branch, bisect it, and print a line of a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=32)
    parser.add_argument("--slow", type=int, default=19, help="0 for a range without a regression")
    parser.add_argument("--rounds", type=int, default=12, help="12 are about 5 %% of a scan here")
    parser.add_argument("--slow-is-broken", action="store_true", help="the slow one fails to build")
    parser.add_argument("--budget", default="2h")
    chosen = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    fork = knob_fork(FOLDER.absolute() / "fork")
    knobs = branch(
        chosen.commits, slow=chosen.slow, rounds=chosen.rounds, slow_is_broken=chosen.slow_is_broken
    )
    hashes = fork.chain(f"bisect-{chosen.commits}-{chosen.slow}-{chosen.rounds}", knobs)
    began = time.monotonic()
    found = _bisect(fork.repository, hashes, budget=chosen.budget)
    minutes = (time.monotonic() - began) / 60
    print(bisect_sentence(found))
    print(markdown([_line(found, slow=chosen.slow, minutes=minutes)], HEADINGS))


def branch(
    commits: int, *, slow: int, rounds: int, slow_is_broken: bool = False
) -> Sequence[Knobs]:
    """Return the commits of the branch; the good end is number 0 and compiles, as does the last."""
    made: list[Knobs] = []
    for number in range(commits):
        inside = 0 < number < commits - 1
        broken = (inside and number % 10 in BROKEN) or (slow_is_broken and number == slow)
        only_notes = inside and number % 10 in NOTES and number != slow
        turned = rounds if 0 < slow <= number else 0
        made.append(
            Knobs(
                rounds=turned,
                label=made[-1].label if only_notes else f"c{number}",
                broken=broken and not only_notes and (number != slow or slow_is_broken),
                notes=f"of {number}" if only_notes or not made else made[-1].notes,
                subject="documentation" if only_notes else "the label",
            )
        )
    return made


def _bisect(repository: Path, hashes: Sequence[str], *, budget: str) -> BisectDocument:
    words = [sys.executable, "-m", "forkwatch", "bisect", hashes[0], hashes[-1]]
    words += ["--workload", "scan", "--budget", budget, "--json"]
    words += ["--repository", str(repository), "--home", str(FOLDER.absolute() / "home")]
    done = shell.run(words, timeout_s=TIMEOUT_S)
    if not done.stdout.strip():
        sys.exit(done.stderr)
    print(done.stderr, file=sys.stderr)
    return BisectDocument.model_validate(json.loads(done.stdout))


def _line(found: BisectDocument, *, slow: int, minutes: float) -> tuple[str, ...]:
    named = set(found.culprits) or {0}
    tried = [one for one in found.commits[1:] if one.state is not CommitState.UNTRIED]
    effect = "-" if found.effect is None else f"{100 * found.effect:+.1f} % (log)"
    return (
        f"{len(found.commits)} commits",
        f"{found.end.value if found.end else 'none'}: {sorted(named)}",
        "yes" if slow in named else "NO",
        str(len(found.observations)),
        str(found.measured_starts),
        str(1 + len(tried)),
        f"{minutes:.1f}",
        effect,
    )


if __name__ == "__main__":
    main()
