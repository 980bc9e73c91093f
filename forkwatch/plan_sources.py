"""Where a verb's plan comes from: a file, or a commit of the fork.

A pull request may change `forkwatch.toml`, and must not be measured by its own word on how much
slower it may be. So the plan of a pair can be that of the branch it is for.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from forkwatch.errors import DoorError
from runner import checkout
from workloads.plan import PLAN_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def plan_path(repository: Path, given: Path | None, revision: str | None) -> Iterator[Path]:
    """Give the path of the plan: the file, else that of the revision, else that of the checkout.

    Raises:
        DoorError: Both were named, or the revision has no plan.
        OperatorError: There is no such revision.
    """
    if revision is None:
        yield given or repository / PLAN_FILE
        return
    if given is not None:
        raise DoorError("give --plan or --plan-from, not both")
    commit = checkout.resolve(repository, revision)
    shown = checkout.git(repository, "cat-file", "blob", f"{commit.sha}:{PLAN_FILE}")
    if not shown.ok:
        raise DoorError(f"{revision} has no {PLAN_FILE}; name a commit of a branch that has one")
    with tempfile.TemporaryDirectory(prefix="forkwatch-") as folder:
        path = Path(folder) / PLAN_FILE
        path.write_text(shown.stdout, encoding="utf-8")
        yield path
