"""The verbs `forkwatch db ...`: upgrade, check, back up, restore and prune a service's database.

stdout is the product: one line on what was done, or JSON. Exit status: 0 fine, 2 misuse.
"""

from __future__ import annotations

import dataclasses
import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forkwatch.arguments import AsJson, HomeFolder
from forkwatch.errors import DoorError
from forkwatch.streams import out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.core.settings import Settings
    from service.flows.retention import Pruned

NewFile = Annotated[Path, typer.Argument(help="The file to write; a new one, such as today.tar.")]
BackupFile = Annotated[Path, typer.Argument(help="A file that `forkwatch db backup` wrote.")]

database = typer.Typer(
    help="The service's database: upgrade, check, back up, restore, prune.", no_args_is_help=True
)


@database.command()
def upgrade(home: HomeFolder = None) -> None:
    """Bring the database to the schema of this version."""
    from service.app.database import upgrade as upgrade_database

    with _settings(home) as settings:
        upgrade_database(settings)


@database.command()
def check(home: HomeFolder = None) -> None:
    """Say whether the database is exactly as this version needs it."""
    from service.app.database import check as check_database

    with _settings(home) as settings:
        settings.home_folder.mkdir(parents=True, exist_ok=True)
        check_database(settings)
    _say("the database is as this version needs it")


@database.command()
def backup(file: NewFile, home: HomeFolder = None) -> None:
    """Write the database and the flows into one file, while the service runs or not."""
    from service.app.backups import backup as back_up

    with _settings(home) as settings:
        manifest = back_up(settings, file)
    size = sum(one.size_bytes for one in manifest.databases.values())
    _say(f"{file}: {size:,} bytes, revision {manifest.revision}")


@database.command()
def restore(
    file: BackupFile,
    *,
    home: HomeFolder = None,
    force: Annotated[
        bool, typer.Option("--force", help="Put databases that are there aside first.")
    ] = False,
) -> None:
    """Put the databases of a backup in their places; the service has to be stopped."""
    from service.app.backups import restore as put_back

    with _settings(home) as settings:
        done = put_back(settings, file, force=force)
    made = f"{done.manifest.made_at:%Y-%m-%d %H:%M} UTC"
    _say(f"restored as of {made}, revision {done.manifest.revision}")
    if done.aside is not None:
        _say(f"what was there before: {done.aside}")


@database.command()
def prune(
    *,
    home: HomeFolder = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would go; change nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Let go of what is older than the settings keep: seconds in documents, single slices."""
    from service.app.backups import opened_retention

    with _settings(home) as settings, opened_retention(settings) as steps:
        pruned = steps.everything(dry=dry_run)
    if as_json:
        told = {"dry_run": dry_run, **dataclasses.asdict(pruned)}
        print(json.dumps(told, indent=2))  # noqa: T201  the product
        return
    for line in _lines(pruned, settings, dry_run=dry_run):
        _say(line)


def _lines(pruned: Pruned, settings: Settings, *, dry_run: bool) -> list[str]:
    verb = "would go" if dry_run else "gone"
    lines = []
    if settings.keep_seconds_days:
        lines.append(
            f"{verb}: the seconds of {pruned.documents} documents, "
            f"{pruned.document_bytes:,} bytes (older than {settings.keep_seconds_days} days)"
        )
    if settings.keep_samples_days:
        lines.append(
            f"{verb}: {pruned.rows:,} samples of {pruned.runs} runs, one for each start stays "
            f"(older than {settings.keep_samples_days} days and not in use)"
        )
    if pruned.bisect_documents:
        lines.append(
            f"{verb}: the documents of {pruned.bisect_documents} measurements of bisects, "
            f"{pruned.bisect_bytes:,} bytes; what they observed stays"
        )
    if not lines:
        names = "FORKWATCH_KEEP_SECONDS_DAYS and FORKWATCH_KEEP_SAMPLES_DAYS"
        lines.append(f"everything is kept for ever: {names} are 0")
    return lines


def _say(line: str) -> None:
    out.print(line, markup=False, highlight=False)


@contextmanager
def _settings(home: Path | None) -> Iterator[Settings]:
    """Give the settings of the service; its errors are lines for the user."""
    from service.core.errors import ServiceError, SettingsError
    from service.core.settings import load_settings

    try:
        yield load_settings(home=home)
    except SettingsError:
        raise
    except ServiceError as error:
        raise DoorError(str(error)) from error
