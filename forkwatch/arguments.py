"""Arguments that several verbs share, with the words that explain them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Repository = Annotated[
    Path, typer.Option("--repository", help="A checkout or bare repository of the fork.")
]
HomeFolder = Annotated[
    Path | None, typer.Option("--home", help="Folder for artifacts, datasets and jobs.")
]
PlanFile = Annotated[
    Path | None, typer.Option("--plan", help="The plan; forkwatch.toml of the checkout if absent.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
SuiteName = Annotated[str, typer.Option("--suite", help="Which suite of the plan.")]
Workloads = Annotated[
    list[str] | None, typer.Option("--workload", help="Only these; may be given several times.")
]
