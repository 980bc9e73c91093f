"""The verb `forkwatch backfill`: have past commits measured, see how far that is, end it.

It writes an order into the service's store, which a running service finds within seconds. stdout is
the product: a line or JSON. Exit status: 0 fine, 2 misuse.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path  # noqa: TC003  Typer reads annotations at run time
from typing import TYPE_CHECKING, Annotated

import typer

from forkwatch.arguments import AsJson, HomeFolder
from forkwatch.streams import out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.core.backfills import BackfillProgress
    from service.flows.backfill import Backfills


def backfill(
    *,
    fork: Annotated[str, typer.Option("--fork", help="Name of the fork, as its plan has it.")],
    commits: Annotated[
        int | None,
        typer.Option("--commits", help="Measure the newest so many before the first one seen."),
    ] = None,
    order: Annotated[
        str, typer.Option("--order", help="spread (ends, then middles) or oldest-first.")
    ] = "spread",
    cancel: Annotated[
        bool, typer.Option("--cancel", help="End the backfill that is under way.")
    ] = False,
    repository: Annotated[
        Path | None,
        typer.Option("--repository", help="The watched repository; FORKWATCH_REPOSITORY's."),
    ] = None,
    home: HomeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Measure past commits for the baseline, whenever nothing else waits; they raise no alert."""
    from forkwatch.open_store import opened_store
    from service.channels.local_git import LocalGit
    from service.core.clock import SystemClock
    from service.core.errors import SettingsError
    from service.core.settings import load_settings
    from service.flows.backfill import Backfills

    if cancel and commits is not None:
        raise typer.BadParameter("give --commits to begin a backfill, or --cancel to end one")
    settings = load_settings(home=home, repository=repository)
    if settings.repository is None:
        raise SettingsError("no repository: give --repository, or set FORKWATCH_REPOSITORY")
    with opened_store(settings) as database:
        code_host = LocalGit(settings.repository)
        asks = Backfills(database=database, clock=SystemClock(), code_host=code_host)
        _order(asks, fork, commits=commits, order=order, cancel=cancel)
        found = asks.newest(fork)
    _show(found, as_json=as_json)


def _order(asks: Backfills, fork: str, *, commits: int | None, order: str, cancel: bool) -> None:
    """Begin or end a backfill, where that is asked for."""
    from service.core.alert_actions import OrderVia
    from service.core.backfills import BackfillOrder

    if cancel:
        asks.cancel(fork, actor="operator")
    elif commits is not None:
        known = {one.value: one for one in BackfillOrder}
        if order not in known:
            raise typer.BadParameter(f"no order {order!r}; there are {', '.join(known)}")
        via = OrderVia.SHELL.value
        asks.ask(fork, commits, order=known[order], actor="operator", via=via)


def _show(found: Sequence[BackfillProgress], *, as_json: bool) -> None:
    """Print backfills, newest first."""
    if as_json:
        print(json.dumps([_plain(one) for one in found], indent=2))  # noqa: T201  the product
        return
    if not found:
        out.print("no backfill; --commits N begins one")
    for one in found:
        out.print(one.words, markup=False, highlight=False)


def _plain(one: BackfillProgress) -> dict[str, object]:
    told = dataclasses.asdict(one.backfill) | {"done": one.done}
    return {
        name: value.isoformat() if hasattr(value, "isoformat") else value
        for name, value in told.items()
    }
