"""The agent's hooks as forkwatch brings them: in a checkout beside us, in a wheel within us."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from forkwatch.errors import EnrolError

if TYPE_CHECKING:
    from collections.abc import Mapping

_HERE = Path(__file__).parent
#: `hooks` is what a wheel has.
_PLACES = (_HERE.parents[1] / ".buildkite" / "agent-hooks", _HERE / "hooks")


def read_hooks(folder: Path | None = None) -> Mapping[str, str]:
    """Return every hook by its name.

    Raises:
        EnrolError: There are none.
    """
    places = (folder,) if folder else _PLACES
    for place in places:
        if place.is_dir():
            found = {
                path.name: path.read_text() for path in place.iterdir() if "." not in path.name
            }
            if found:
                return found
    raise EnrolError(
        f"there are no hooks in {places[0]}: name forkwatch's folder .buildkite/agent-hooks with "
        "--hooks"
    )
