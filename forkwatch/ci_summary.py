"""Texts where a CI shows them: the summary of a GitHub Actions job, an annotation on Buildkite.

Markdown comes in and is on the page afterwards. What cannot be shown is a line on stderr: a verdict
never depends on whether its table could be drawn. Outputs and further steps, on which other jobs
depend, are errors where they fail.
"""

from __future__ import annotations

import shutil
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from forkwatch.ci_settings import CiSettings
from forkwatch.errors import DoorError
from forkwatch.streams import EXIT_UNSTABLE, err
from reports.explanation_text import explanation_markdown
from reports.fitting import Fold, fitted, size
from reports.markdown import efficiency_markdown, throughput_markdown
from reports.markup import markdown, markdown_block
from reports.run_facts import facts_markdown
from runner import shell

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forkwatch.comparing import Comparison

#: What GitHub shows of one step, and Buildkite of one annotation; a little is kept for others that
#: write into the same step.
SUMMARY_BYTES_MAX: Final = 1024 * 1024 - 16 * 1024
#: Of the agent's program, which has retries of its own.
AGENT_TIMEOUT_S: Final = 120
#: Sentences of many workloads; their numbers are in the table below.
_SENTENCE_LENGTH_MAX: Final = 2000


class Tone(StrEnum):
    """How loud an annotation is, in Buildkite's words."""

    SUCCESS = "success"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def tone_of(status: int) -> Tone:
    """Return the tone of what ended with an exit status."""
    if status == EXIT_UNSTABLE:
        return Tone.WARNING
    return Tone.ERROR if status else Tone.SUCCESS


def comparison_markdown(comparison: Comparison) -> str:
    """Return a pair's verdicts as Markdown, with the rest folded away as far as it fits."""
    document = comparison.document
    head = [f"**{markdown(comparison.sentence, length_max=_SENTENCE_LENGTH_MAX)}**"]
    folds = []
    if comparison.rows:
        head.append(throughput_markdown(comparison.rows))
        folds.append(Fold(title="Cost per operation", body=efficiency_markdown(comparison.rows)))
    if document.failure and document.failure.log_tail:
        folds.append(Fold(title="End of the log", body=markdown_block(document.failure.log_tail)))
    if document.explanation:
        folds.append(Fold(title="Why", body=explanation_markdown(document.explanation)))
    facts = facts_markdown(document)
    if facts:
        folds.append(Fold(title="Load and start", body=facts))
    return fitted("\n\n".join(head), folds, bytes_max=SUMMARY_BYTES_MAX)


def tell(text: str, *, tone: Tone, context: str, settings: CiSettings | None = None) -> None:
    """Show a text on the page of the job, if a CI runs us; trouble is a line on stderr.

    Args:
        text: Markdown.
        tone: How loud.
        context: On Buildkite a later text of the same context takes the place of this one.
        settings: Of the CI; from the environment if absent.
    """
    ci = settings or CiSettings()
    if ci.github_step_summary is not None:
        trouble = _append(ci.github_step_summary, text)
    elif ci.buildkite:
        trouble = _annotate(text, tone=tone, context=context)
    else:
        trouble = "neither GitHub Actions nor Buildkite runs this"
    if trouble:
        err.print(
            f"no summary was written: {trouble}", markup=False, highlight=False, soft_wrap=True
        )


def hand_over(outputs: Mapping[str, str], *, settings: CiSettings | None = None) -> None:
    """Give the outputs of a step to the jobs that need it; only GitHub Actions knows such.

    Raises:
        DoorError: They could not be written.
    """
    path = (settings or CiSettings()).github_output
    if path is None:
        return
    assert not any("\n" in text for pair in outputs.items() for text in pair), "one line each"
    lines = "".join(f"{name}={value}\n" for name, value in outputs.items())
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(lines)
    except OSError as error:
        raise DoorError(f"{path} cannot be written: {error.strerror}") from error


def add_steps(pipeline: str) -> None:
    """Have Buildkite add these steps to the build that we run in.

    Raises:
        DoorError: The agent's program is not there, or Buildkite does not take them.
    """
    program = shutil.which("buildkite-agent")
    if program is None:
        raise DoorError("buildkite-agent is not in PATH, so no step can be added to the build")
    with tempfile.TemporaryDirectory(prefix="forkwatch-") as folder:
        path = Path(folder) / "pipeline.json"
        path.write_text(pipeline, encoding="utf-8")
        done = shell.run([program, "pipeline", "upload", str(path)], timeout_s=AGENT_TIMEOUT_S)
    if not done.ok:
        raise DoorError(f"buildkite-agent could not add steps: {_last_line(done.stderr)}")


def _append(path: Path, text: str) -> str:
    """Add a text to the summary of a GitHub step; return what was the matter."""
    try:
        there = path.stat().st_size if path.exists() else 0
        if there + size(text) > SUMMARY_BYTES_MAX:
            return f"it has {size(text)} bytes, and {there} of this step are written already"
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")
    except OSError as error:
        return f"{path}: {error.strerror}"
    return ""


def _annotate(text: str, *, tone: Tone, context: str) -> str:
    """Make an annotation on Buildkite; return what was the matter."""
    program = shutil.which("buildkite-agent")
    if program is None:
        return "buildkite-agent is not in PATH"
    command = [program, "annotate", "--style", tone.value, "--context", context]
    # Longer than an argument may be.
    with tempfile.TemporaryFile() as body, tempfile.TemporaryFile() as said:
        body.write(text.encode("utf-8", errors="replace"))
        body.seek(0)
        process = shell.start(command, output=said, stdin=body.fileno())
        try:
            status = process.wait(AGENT_TIMEOUT_S)
        finally:
            process.kill()
        if status == 0:
            return ""
        said.seek(0)
        last = _last_line(said.read(shell.OUTPUT_BYTES_MAX).decode(errors="replace"))
    return f"buildkite-agent took too long ({last})" if status is None else last


def _last_line(text: str) -> str:
    lines = shell.readable(text).strip().splitlines()
    return lines[-1] if lines else "buildkite-agent said nothing"
