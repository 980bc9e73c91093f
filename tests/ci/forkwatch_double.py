"""The command as jobs of a test call it: everything real but the measuring.

What a run or a pair would find is said by the subjects of the commits, as in
`tests/fakes/scripted_measurement.py`; `host check` finds a noisy host where the
home has a file that says so, and with another file there the next measurement never ends.

    python -m tests.ci.forkwatch_double compare BASELINE CANDIDATE
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from forkwatch import cli
from forkwatch.streams import EXIT_UNSTABLE
from runner.settings import RunnerSettings

if TYPE_CHECKING:
    from results.document import RunDocument
    from results.job import JobOrder
    from runner.progress import Progress
    from runner.settings import Home

#: A file in the home that makes the host a noisy one.
NOISY: Final = "noisy"
#: A file in the home that makes the next measurement hang, which takes it away.
STUCK: Final = "stuck"
#: Verbs that measure. What they need takes seconds to import, and most calls of a build are others.
MEASURING: Final = ("run", "compare")


def program_text(module: str = "tests.ci.forkwatch_double") -> str:
    """Return a program to be put on a job's PATH as `forkwatch`: the double, or another module."""
    root = Path(__file__).parents[2]
    path = f"{root}${{PYTHONPATH:+:$PYTHONPATH}}"
    # A job may have a folder of any name where it works.
    words = f"{sys.executable} -P -m {module}"
    return f'#!/bin/sh\nPYTHONPATH="{path}" exec {words} "$@"\n'


def do(
    order: JobOrder, *, home: Home, settings: RunnerSettings, progress: Progress
) -> tuple[RunDocument, Path]:
    """Take the place of `forkwatch.comparing.do`."""
    del settings, progress
    from results.atomic import write_atomically  # noqa: PLC0415  as `MEASURING` says
    from results.job import DOCUMENT_FILE  # noqa: PLC0415  as `MEASURING` says
    from runner import checkout  # noqa: PLC0415  as `MEASURING` says
    from tests.fakes.scripted_measurement import measure  # noqa: PLC0415  as `MEASURING` says

    stuck = home.root / STUCK
    if stuck.exists():
        stuck.unlink()
        threading.Event().wait()
    shas = [sha for sha in (order.candidate, order.baseline) if sha]
    subjects = {sha: checkout.resolve(order.repository, sha).subject for sha in shas}
    document = measure(order, subjects, host_class=order.host_class)
    folder = home.folder("jobs", order.job)
    write_atomically(folder / DOCUMENT_FILE, document.model_dump_json())
    return document, folder


def main() -> None:
    """Run the command with the double in place."""
    if sys.argv[1:3] == ["host", "check"]:
        noisy = (RunnerSettings().home / NOISY).exists()
        typer.echo("noisy  governor: powersave" if noisy else "ok     governor: performance")
        sys.exit(EXIT_UNSTABLE if noisy else 0)
    if sys.argv[1:2] and sys.argv[1] in MEASURING:
        from forkwatch import comparing  # noqa: PLC0415  as `MEASURING` says

        comparing.do = do
    cli.main()


if __name__ == "__main__":
    main()
