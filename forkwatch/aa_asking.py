"""`forkwatch host aa --service`: the order of an A/A check, written into the service's store.

A running service finds it within seconds and has its host class checked when nothing else waits.
stdout is the product: a line for each check, or JSON.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Final

from forkwatch.open_store import opened_store
from forkwatch.streams import out
from service.channels.local_git import LocalGit
from service.core.alert_actions import OrderVia
from service.core.clock import SystemClock
from service.core.errors import SettingsError
from service.core.settings import load_settings
from service.flows.aa_checks import AaChecks

if TYPE_CHECKING:
    from pathlib import Path

    from service.core.aa_checks import AaCheck

#: What is printed: the order, and the checks before it.
_SHOWN: Final = 5


def ask_service(repository: Path | None, home: Path | None, *, as_json: bool) -> None:
    """Order a check of the host class that the service measures on, and print the newest ones.

    Raises:
        SettingsError: No repository is set.
        DoorError: A check is under way, or there is nothing to check with.
    """
    settings = load_settings(home=home, repository=repository)
    if settings.repository is None:
        raise SettingsError("no repository: give --repository, or set FORKWATCH_REPOSITORY")
    with opened_store(settings) as database:
        checks = AaChecks(
            database=database,
            clock=SystemClock(),
            code_host=LocalGit(settings.repository),
            settings=settings,
        )
        checks.ask(settings.host_class, actor="operator", via=OrderVia.SHELL.value)
        found = checks.newest(settings.host_class)[:_SHOWN]
    if as_json:
        print(json.dumps([_plain(one) for one in found], indent=2))  # noqa: T201  the product
        return
    for one in found:
        out.print(_line(one), markup=False, highlight=False)


def _line(check: AaCheck) -> str:
    asked = f"{check.created_at:%Y-%m-%d %H:%M} UTC, {check.sha[:8]}"
    said = check.said or "it is measured when nothing else waits"
    return f"A/A check of {check.host_class} ({asked}): {check.state.value}: {said}"


def _plain(check: AaCheck) -> dict[str, object]:
    return {
        name: value.isoformat() if hasattr(value, "isoformat") else value
        for name, value in dataclasses.asdict(check).items()
    }
