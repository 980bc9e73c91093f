"""The verbs `forkwatch token ...`: make, list and revoke the tokens of a service's API.

stdout is the product: the token itself, once, or a table or JSON. Exit status: 0 fine, 2 misuse.
"""

from __future__ import annotations

import dataclasses
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forkwatch.arguments import AsJson, HomeFolder
from forkwatch.errors import DoorError
from forkwatch.streams import err, out

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from service.core.tokens import Token
    from service.flows.tokens import Tokens

token = typer.Typer(help="Tokens for the service's API: make, list, revoke.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Who or what uses it, such as ada or release-bot.")]


@token.command()
def create(
    name: Name,
    *,
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", help="read, submit, act or operate; may be given several times."),
    ] = None,
    days: Annotated[
        int | None, typer.Option("--days", help="Good for so many days; for ever if absent.")
    ] = None,
    home: HomeFolder = None,
) -> None:
    """Make a token and print it; it is shown this once and cannot be shown again."""
    from service.core.tokens import Scope

    known = {one.value: one for one in Scope}
    for word in scope or ():
        if word not in known:
            raise typer.BadParameter(f"no scope {word!r}; there are {', '.join(known)}")
    scopes = [known[word] for word in scope or ("read",)]
    with _tokens(home) as tokens:
        made, text = tokens.create(name, scopes, days=days)
    err.print(f"token {made.name} may {', '.join(made.scopes)}; keep it now, it is not shown again")
    out.print(text, markup=False, highlight=False)


@token.command(name="list")
def show(home: HomeFolder = None, *, as_json: AsJson = False) -> None:
    """List the tokens, good or not, without their secrets."""
    with _tokens(home) as tokens:
        found = tokens.everything()
    if as_json:
        told = [_plain(one) for one in found]
        print(json.dumps(told, indent=2))  # noqa: T201  the product
        return
    for line in _lines(found):
        out.print(line, markup=False, highlight=False)


@token.command()
def revoke(name: Name, home: HomeFolder = None) -> None:
    """Revoke a token, from the next request on."""
    with _tokens(home) as tokens:
        gone = tokens.revoke(name)
    out.print(f"token {gone.name} is revoked", markup=False, highlight=False)


@contextmanager
def _tokens(home: Path | None) -> Iterator[Tokens]:
    """Give the tokens of the service of the settings; its errors are lines for the user."""
    from service.app.tokens import opened_tokens
    from service.core.errors import ServiceError, SettingsError
    from service.core.settings import load_settings

    try:
        with opened_tokens(load_settings(home=home)) as tokens:
            yield tokens
    except SettingsError:
        raise
    except ServiceError as error:
        raise DoorError(str(error)) from error


def _lines(found: Sequence[Token]) -> list[str]:
    if not found:
        return ["no tokens; `forkwatch token create NAME --scope act` makes one"]
    width = max(len(one.name) for one in found)
    return [
        f"{one.name:{width}}  {','.join(one.scopes):15}  {_state(one)}, {_use(one)}"
        for one in found
    ]


def _state(one: Token) -> str:
    if one.revoked_at is not None:
        return f"revoked {one.revoked_at:%Y-%m-%d}"
    if one.expires_at is not None:
        return f"good until {one.expires_at:%Y-%m-%d %H:%M} UTC"
    return "good"


def _use(one: Token) -> str:
    if one.last_used_at is None:
        return "never used"
    return f"last used {one.last_used_at:%Y-%m-%d %H:%M} UTC"


def _plain(one: Token) -> dict[str, Any]:
    return {
        name: value.isoformat() if hasattr(value, "isoformat") else value
        for name, value in dataclasses.asdict(one).items()
    }
