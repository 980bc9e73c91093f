"""What `forkwatch doctor` prints of the fleet's cache, beside what it says of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.testing import CliRunner

from forkwatch.cli import app

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from click.testing import Result


def doctor(folder: Path) -> Result:
    return CliRunner().invoke(app, ["doctor", "--home", str(folder / "home")])


def line_of(done: Result, name: str) -> list[str]:
    """Return the line about something, and the one after it."""
    lines = done.stdout.splitlines()
    place = next(at for at, line in enumerate(lines) if f" {name}: " in line)
    return lines[place : place + 2]


def test_a_cache_that_can_be_used_is_ok(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    share = tmp_path / "share"
    share.mkdir()
    monkeypatch.setenv("FORKWATCH_CACHE_URL", str(share))

    [said, *_] = line_of(doctor(tmp_path), "fleet cache")
    assert said.startswith(f"ok      fleet cache: {share}: trusted and outside written and read")


def test_a_cache_that_is_away_says_what_to_do_and_fails_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = doctor(tmp_path)
    monkeypatch.setenv("FORKWATCH_CACHE_URL", str(tmp_path / "share"))
    done = doctor(tmp_path)

    assert "fleet cache" not in before.stdout
    said, advice = line_of(done, "fleet cache")
    assert said.startswith(f"away    fleet cache: {tmp_path / 'share'}: there is no folder")
    assert advice.strip().startswith(f"make or mount {tmp_path / 'share'}")
    assert done.exit_code == before.exit_code


def test_an_address_that_is_none_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORKWATCH_CACHE_URL", "ftp://fleet")
    done = doctor(tmp_path)

    assert line_of(done, "fleet cache")[0].startswith("MISSING fleet cache: FORKWATCH_CACHE_URL")
    assert done.exit_code == 1
