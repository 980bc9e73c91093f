"""The verb `forkwatch digest`: its arguments, and what it prints."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from forkwatch.arguments import HomeFolder
from forkwatch.errors import DoorError


def digest(
    *,
    week: Annotated[
        str | None, typer.Option("--week", help="Such as 2026-W47; the last whole one if absent.")
    ] = None,
    fork: Annotated[str | None, typer.Option("--fork", help="Only this fork.")] = None,
    against: Annotated[
        str | None,
        typer.Option("--against", help="Compare the branch with this commit, such as a release."),
    ] = None,
    time_zone: Annotated[
        str, typer.Option("--time-zone", help="Whose weeks, such as Europe/Helsinki.")
    ] = "UTC",
    home: HomeFolder = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Print the weekly digest of each fork: what got slower, faster, and what needs somebody."""
    from forkwatch.digest_reading import read_digests
    from reports.digest_text import digest_document, digest_lines, digest_markdown
    from service.core.errors import NotFoundError
    from service.core.settings import load_settings

    if as_json and markdown:
        raise typer.BadParameter("give --json or --markdown, not both")
    settings = load_settings(home=home)
    try:
        found = read_digests(
            settings, week_name=week, fork_name=fork, against=against, zone_name=time_zone
        )
    except NotFoundError as error:
        raise DoorError(str(error)) from error
    if as_json:
        print(json.dumps([digest_document(one) for one in found], indent=2))  # noqa: T201  the product
        return
    for place, one in enumerate(found):
        if place:
            print()  # noqa: T201  the product
        text = digest_markdown(one) if markdown else "\n".join([*digest_lines(one), ""])
        print(text, end="")  # noqa: T201  the product
