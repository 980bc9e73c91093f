"""The command line: every verb, in the order of the work.

stdout is the product (a table or JSON), stderr the log and the progress. Exit status: 0 fine, 1 a
regression or failed work, 2 misuse, 3 an unstable host, 130 interrupted. A verb imports the runner
or the service only when it is called, so that `forkwatch plan` starts without either.
"""

from __future__ import annotations

import logging
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from forkwatch.arguments import (
    AsJson,
    HomeFolder,
    PlanFile,
    Repository,
)
from forkwatch.backfill_verb import backfill
from forkwatch.bisect_verb import bisect
from forkwatch.compare_verb import compare
from forkwatch.db_verbs import database
from forkwatch.digest_verb import digest
from forkwatch.explain_verb import explain
from forkwatch.export_verb import export
from forkwatch.history_verb import history
from forkwatch.homes import open_home
from forkwatch.host_verbs import host
from forkwatch.import_verb import imports
from forkwatch.matrix_verb import matrix
from forkwatch.pipeline_verb import pipeline
from forkwatch.run_verb import run
from forkwatch.streams import EXIT_FOUND, EXIT_INTERRUPTED, EXIT_MISUSE, err, out
from forkwatch.token_verb import token
from workloads.errors import CatalogError

if TYPE_CHECKING:
    from types import FrameType

    from results.document import RunDocument

app = typer.Typer(
    help="Notices on the commit when a database fork becomes slower.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(database, name="db")
app.add_typer(host, name="host")
app.add_typer(token, name="token")
app.add_typer(imports, name="import")
app.add_typer(history, name="history")


def main() -> NoReturn:
    """Run the command and exit with its status; expected errors are one line on stderr."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(name)s %(message)s"
    )
    for noisy in ("httpx", "httpcore"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # A terminated runner has to leave its contexts, so that servers stop and folders go.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        status = app(standalone_mode=False)
    except typer.Exit as leave:
        status = leave.exit_code
    except KeyboardInterrupt:
        status = EXIT_INTERRUPTED
    except Exception as error:
        if not _expected(error):
            raise
        err.print(f"forkwatch: {error}", markup=False, highlight=False)
        status = EXIT_MISUSE
    if status == EXIT_INTERRUPTED:
        err.print("interrupted; the same command goes on from the last complete start")
    sys.exit(status or 0)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    del number, frame
    raise KeyboardInterrupt


def _expected(error: Exception) -> bool:
    """Whether an error tells the user what to do, rather than being a bug."""
    # Told by name: importing both halves here would cost every verb their start-up time.
    names = {kind.__name__ for kind in type(error).__mro__}
    mine = {"DoorError", "OperatorError", "SubmitError", "SettingsError", "UsageError"}
    return isinstance(error, CatalogError) or bool(names & mine)


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="The fork's checkout.")] = Path(),
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing plan.")] = False,
) -> None:
    """Write a commented forkwatch.toml after looking at the fork's CMakeLists.txt."""
    from forkwatch.init import write_plan

    path = write_plan(folder, force=force)
    out.print(f"wrote {path}; `forkwatch plan` checks it", markup=False)


@app.command()
def plan(repository: Repository = Path(), plan_file: PlanFile = None) -> None:
    """Check the plan and say what it would measure, and for how long."""
    from workloads.plan import PLAN_FILE, read_plan

    path = plan_file or repository / PLAN_FILE
    found = read_plan(path)
    out.print(f"{path}: fork {found.fork.name}, branch {found.fork.branch}", markup=False)
    for name, suite in found.suites.items():
        per_start = len(suite.workloads) * (suite.slices * suite.seconds + suite.warmup_seconds)
        minutes = per_start * suite.starts / 60
        out.print(
            f"suite {name}: {', '.join(suite.workloads)}; {suite.starts} starts of "
            f"{suite.slices} x {suite.seconds} s: about {minutes:.1f} minutes a commit",
            markup=False,
        )


app.command()(run)
app.command()(compare)
app.command()(bisect)
app.command()(backfill)
app.command()(matrix)
app.command()(explain)
app.command()(digest)
app.command()(export)
app.command()(pipeline)


@app.command()
def submit(
    document: Annotated[Path, typer.Argument(help="A run document.")],
    *,
    url: Annotated[str, typer.Option("--url", help="Base address of the service.")],
    credential_file: Annotated[
        Path, typer.Option("--credential-file", help="File with the job's credential.")
    ],
) -> None:
    """Submit a run document to the service; doing it twice stores it once."""
    from runner.client import submit as submit_document

    parsed = _read_document(document)
    credential = credential_file.read_text().strip()
    out.print(submit_document(parsed, url=url, credential=credential))


@app.command()
def report(
    document: Annotated[Path, typer.Argument(help="The run document of a pair.")],
    *,
    plan_file: PlanFile = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    as_json: AsJson = False,
) -> None:
    """Judge a stored pair again and print its tables."""
    from forkwatch.comparing import conclude
    from forkwatch.showing import show, status_of
    from reports.explanation_text import explanation_markdown
    from reports.markdown import report_markdown
    from reports.run_facts import facts_markdown
    from workloads.plan import PLAN_FILE, read_plan

    parsed = _read_document(document)
    path = plan_file or Path(PLAN_FILE)
    read_plan(path)
    comparison = conclude(parsed, path.read_text())
    if markdown:
        print(report_markdown(comparison.rows, sentence=comparison.sentence))  # noqa: T201  product
        facts = facts_markdown(parsed)
        if facts:
            print(facts)  # noqa: T201  product
        if parsed.explanation:
            print(explanation_markdown(parsed.explanation))  # noqa: T201  product
        raise typer.Exit(status_of(comparison))
    show(comparison, document, as_json=as_json)


@app.command()
def detect(
    file: Annotated[str, typer.Argument(help="A CSV file in commit order; - is standard input.")],
    *,
    column: Annotated[
        str | None, typer.Option("--column", help="Name or number of a column; all if absent.")
    ] = None,
    more_is_better: Annotated[
        bool | None,
        typer.Option("--more-is-better/--less-is-better", help="Says which changes are worse."),
    ] = None,
    fail_on_change: Annotated[
        bool, typer.Option("--fail-on-change", help="Exit 1 on a change (for the worse).")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find the change points of any series in a CSV file."""
    from forkwatch.detecting import detect as detect_series

    raise typer.Exit(
        detect_series(
            file,
            column=column,
            more_is_better=more_is_better,
            as_json=as_json,
            fail_on_change=fail_on_change,
        )
    )


@app.command()
def serve(
    repository: Annotated[
        Path | None, typer.Option("--repository", help="A local repository to follow.")
    ] = None,
    home: HomeFolder = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="Port to listen on.")] = None,
    poll_seconds: Annotated[
        float | None, typer.Option("--poll-seconds", help="Seconds between looks at the branch.")
    ] = None,
) -> None:
    """Run the service: follow the repository, judge commits, show pages."""
    from service.app.serve import serve as serve_settings

    serve_settings(
        _service_settings(
            home=home, repository=repository, host=host, port=port, poll_seconds=poll_seconds
        )
    )


@app.command()
def demo(
    *,
    home: Annotated[
        Path, typer.Option("--home", help="Folder for the demo fork and the service.")
    ] = Path(".forkwatch/demo"),
    port: Annotated[int, typer.Option("--port", help="Port of the pages.")] = 8420,
    leave: Annotated[
        bool, typer.Option("--exit", help="End when every commit is judged; 0 if it was right.")
    ] = False,
) -> None:
    """Make a demo fork, follow its commits, find the slow one, and show the pages."""
    from forkwatch.demo.drive import drive

    raise typer.Exit(drive(home, port=port, leave=leave))


@app.command()
def doctor(home: HomeFolder = None) -> None:
    """Look at this machine: what is missing, what is away, and what makes results noisy."""
    from runner.fleet_cache.checking import cache_checks
    from runner.host import checks

    home_folder, settings = open_home(home)
    found = [(one, "noisy") for one in checks(home_folder.folder())]
    found += [(one, "away") for one in cache_checks(settings)]
    for check, otherwise in found:
        mark = "ok" if check.ok else "MISSING" if check.fatal else otherwise
        advice = "" if check.ok else f"\n        {check.advice}"
        out.print(f"{mark:<7} {check.name}: {check.found}{advice}", markup=False, highlight=False)
    if any(check.fatal and not check.ok for check, _ in found):
        raise typer.Exit(EXIT_FOUND)


def _service_settings(**given: Any) -> Any:
    from service.core.settings import load_settings

    return load_settings(**{key: value for key, value in given.items() if value is not None})


def _read_document(path: Path) -> RunDocument:
    from results.document import RunDocument as Document

    try:
        return Document.model_validate_json(path.read_bytes())
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise typer.BadParameter(f"{path} is not a run document: {error}") from error
