"""The verbs `forkwatch history ...`: keep what runs found, and judge the next run by it.

For a fork without the service. stdout is the product, a table or JSON. Exit status: 0 fine, 1 a
suspicion that `forkwatch compare` has to confirm or clear, 2 misuse.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from forkwatch.arguments import AsJson, PlanFile, Repository
from forkwatch.compare_verb import OnCi
from forkwatch.errors import DoorError
from forkwatch.pipeline_verb import Hosts
from forkwatch.streams import EXIT_FOUND, out

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forkwatch.history_judging import Finding
    from forkwatch.history_places import Place
    from reports.rows import Row
    from results.document import RunDocument
    from workloads.plan import Plan

#: Nobody checks it out, and its name says whose it is.
BRANCH: Final = "forkwatch-history"

history = typer.Typer(
    help="A history without the service: kept on a branch or in a folder.", no_args_is_help=True
)

Document = Annotated[Path, typer.Argument(help="A run document.")]
Branch = Annotated[
    str, typer.Option("--branch", help="Branch of the fork that the history is kept on.")
]
Remote = Annotated[
    str, typer.Option("--remote", help="Where the branch is; `.` is the repository itself.")
]
Folder = Annotated[
    Path | None, typer.Option("--folder", help="Keep it in this folder instead of on a branch.")
]


@history.command()
def add(
    document: Document,
    *,
    branch: Branch = BRANCH,
    remote: Remote = "origin",
    folder: Folder = None,
    repository: Repository = Path(),
    plan_file: PlanFile = None,
) -> None:
    """Add a run to the history of its series; doing it twice adds it once."""
    from forkwatch.history_text import entries_of, file_of, with_entry

    run = _read_document(document)
    found = entries_of(run, changed=_changed(run, _plan_text(repository, plan_file)))
    if not found:
        out.print(f"nothing to add: run {run.id} is {run.outcome}", markup=False)
        return
    names = {file_of(key): key for key in found}

    def changed_files(files: Mapping[str, str]) -> dict[str, str]:
        texts = {
            name: with_entry(files.get(name, ""), key, found[key], source=name)
            for name, key in names.items()
        }
        return {name: text for name, text in texts.items() if text != files.get(name)}

    sha = run.candidate.commit.sha
    place = _place(repository, branch=branch, remote=remote, folder=folder)
    new = place.update(names, changed_files, message=f"Run of {sha[:12]} on {_host_class(run)}")
    where = folder or branch
    said = f"added to {len(found)} series" if new else "was there already"
    out.print(f"run {run.id} of {sha[:8]} {said} in {where}", markup=False, highlight=False)


@history.command()
def judge(
    document: Document,
    *,
    branch: Branch = BRANCH,
    remote: Remote = "origin",
    folder: Folder = None,
    repository: Repository = Path(),
    plan_file: PlanFile = None,
    say_only: Annotated[
        bool, typer.Option("--say-only", help="Exit 0 with a suspicion too: the next job tells.")
    ] = False,
    ci: OnCi = False,
    hosts: Hosts = 1,
    as_json: AsJson = False,
) -> None:
    """Judge a commit's own run by the runs of its ancestors; exit 1 on a suspicion."""
    from forkwatch.history_judging import ancestors, rows_of
    from forkwatch.history_judging import judge as judge_run
    from forkwatch.history_text import entries_of, file_of, read
    from workloads.plan import parse_plan

    run = _read_document(document)
    plan = parse_plan(_plan_text(repository, plan_file))
    names = {key: file_of(key) for key in entries_of(run)}
    place = _place(repository, branch=branch, remote=remote, folder=folder)
    files = place.read(names.values()) if names else {}
    found = judge_run(
        run,
        {key: read(files.get(name, ""), source=name) for key, name in names.items()},
        plan.gates,
        before=ancestors(repository.resolve(), run.candidate.commit.sha),
    )
    rows = rows_of(found, run)
    _show(found, rows, as_json=as_json)
    if ci:
        kept_on = branch if folder is None else None
        _tell(found, rows, run, plan, kept_on=kept_on, hosts=hosts)
    if found.baseline and not say_only:
        raise typer.Exit(EXIT_FOUND)


def _changed(run: RunDocument, plan_text: str) -> set[str]:
    """Return the workloads that a paired run has shown to be on a new level."""
    from detectors.verdict import Decision
    from forkwatch.comparing import conclude

    return {
        workload
        for workload, verdict in conclude(run, plan_text).verdicts.items()
        if verdict.decision in {Decision.REGRESSION, Decision.IMPROVEMENT}
    }


def _place(repository: Path, *, branch: str, remote: str, folder: Path | None) -> Place:
    from forkwatch.history_places import BranchPlace, FolderPlace

    if folder is not None:
        return FolderPlace(folder=folder.resolve())
    return BranchPlace(repository=repository.resolve(), branch=branch, remote=remote)


def _plan_text(repository: Path, plan_file: Path | None) -> str:
    from workloads.plan import PLAN_FILE, read_plan

    path = plan_file or repository / PLAN_FILE
    read_plan(path)
    return path.read_text(encoding="utf-8")


def _read_document(path: Path) -> RunDocument:
    from results.document import RunDocument as Parsed

    try:
        return Parsed.model_validate_json(path.read_bytes())
    except OSError as error:
        raise DoorError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise DoorError(f"{path} is not a run document: {error}") from error


def _show(found: Finding, rows: tuple[Row, ...], *, as_json: bool) -> None:
    from reports.terminal import report_renderable

    if as_json:
        print(json.dumps(_as_data(found), indent=2))  # noqa: T201  the product
        return
    out.print(report_renderable(rows, sentence=_sentence(found)))
    if found.baseline:
        out.print(f"\n{_advice(found)}", markup=False, highlight=False)


def _as_data(found: Finding) -> dict[str, object]:
    return {
        "candidate": found.sha,
        "baseline": found.baseline,
        "suspicious": found.suspicious,
        "sentence": _sentence(found),
        "verdicts": {name: dataclasses.asdict(one) for name, one in found.verdicts.items()},
        "runs": {one.workload: len(one.history) for one in found.judged},
    }


def _sentence(found: Finding) -> str:
    """Return what is known: a run by itself only looks slower."""
    from reports.sentence import sentence

    new = [one.workload for one in found.judged if one.verdict is None]
    parts = []
    if found.verdicts:
        parts.append(sentence(found.verdicts, at=found.sha, confirmed=False))
    if new:
        parts.append(f"first run of {', '.join(new)}: later commits are compared with it")
    return "; ".join(parts)


def _advice(found: Finding) -> str:
    assert found.baseline, "only a suspicion needs advice"
    return (
        f"suspicious: {', '.join(found.suspicious)}; `forkwatch compare {found.baseline[:12]} "
        f"{found.sha[:12]}` confirms or clears it"
    )


def _tell(
    found: Finding,
    rows: tuple[Row, ...],
    run: RunDocument,
    plan: Plan,
    *,
    kept_on: str | None,
    hosts: int,
) -> None:
    """Show the tables on the page of the job, and have a suspicion confirmed by the next job."""
    from forkwatch.ci_settings import CiSettings
    from forkwatch.ci_summary import Tone, add_steps, hand_over, tell
    from forkwatch.pipeline import Wish, confirm_pipeline
    from reports.markdown import throughput_markdown
    from reports.markup import markdown

    ci = CiSettings()
    text = [f"**{markdown(_sentence(found), length_max=2000)}**", throughput_markdown(rows)]
    if found.baseline:
        text.append(markdown(_advice(found), length_max=2000))
    tone = Tone.WARNING if found.baseline else Tone.INFO
    tell("\n\n".join(text), tone=tone, context=f"forkwatch-{_host_class(run)}", settings=ci)
    outputs = {
        "suspicious": str(found.baseline is not None).lower(),
        "baseline": found.baseline or "",
        "candidate": found.sha,
    }
    hand_over(outputs, settings=ci)
    if ci.buildkite and found.baseline:
        wish = Wish(
            suite=run.suite,
            host_classes=(_host_class(run),),
            hosts=hosts,
            history=kept_on,
            history_queue=ci.buildkite_agent_meta_data_queue,
        )
        steps = confirm_pipeline(plan, wish, baseline=found.baseline, candidate=found.sha)
        add_steps(json.dumps(steps))


def _host_class(run: RunDocument) -> str:
    return run.host.host_class
