"""Tokens: made once, kept as hashes, good for what they say and for as long as they say."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from forkwatch.errors import DoorError
from forkwatch.token_verb import token
from service.core.alert_records import AuditSubject
from service.core.errors import (
    CredentialMissingError,
    CredentialRefusedError,
    NotFoundError,
    TokenError,
)
from service.core.settings import load_settings
from service.core.tokens import Scope, read_secret
from service.flows.tokens import USE_NOTED_EVERY, Tokens
from service.store import audit, migrate
from tests.fakes.memory_fork import AT, StillClock

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from service.store.database import Database


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def tokens(database: Database, clock: StillClock) -> Tokens:
    return Tokens(database=database, clock=clock)


def test_a_token_is_good_for_its_scopes_and_for_nothing_else(tokens: Tokens) -> None:
    made, secret = tokens.create("ada", [Scope.READ, Scope.ACT])

    assert tokens.check(secret, Scope.READ).name == "ada"
    assert tokens.check(secret, Scope.ACT).scopes == (Scope.ACT, Scope.READ)
    with pytest.raises(CredentialRefusedError, match="needs the scope 'submit'"):
        tokens.check(secret, Scope.SUBMIT)
    assert tokens.everything()[0].id == made.id


def test_the_store_holds_no_secret(tokens: Tokens) -> None:
    _, secret = tokens.create("ada", [Scope.READ])
    sent = read_secret(secret)
    assert sent is not None
    assert len(sent.secret) == 43

    with tokens.database.reading() as session:
        rows = session.execute(text("SELECT * FROM tokens")).all()
        logged = session.execute(text("SELECT * FROM audit_log")).all()
    assert sent.id in str(rows)
    assert sent.secret not in str(rows) + str(logged)


def test_two_tokens_have_nothing_in_common(tokens: Tokens) -> None:
    secrets = [tokens.create(name, [Scope.READ])[1] for name in ("ada", "grace")]
    ids, words = zip(*((s.id, s.secret) for s in map(read_secret, secrets) if s), strict=True)

    assert len(set(ids)) == len(set(words)) == 2
    crossed = f"fw_{ids[0]}_{words[1]}"
    with pytest.raises(CredentialMissingError):
        tokens.check(crossed, Scope.READ)


@pytest.mark.parametrize(
    "sent",
    ["", "fw", "fw_", "fw__", "fw_abc", "fw_abc_", "xx_abc_def", "fw_ü_def", "fw_abc_ü", "x" * 500],
)
def test_what_is_no_token_is_refused_as_one_that_is_unknown(tokens: Tokens, sent: str) -> None:
    tokens.create("ada", [Scope.READ])
    with pytest.raises(CredentialMissingError, match="not known, or no longer good"):
        tokens.check(sent, Scope.READ)


def test_a_revoked_or_old_token_is_refused_from_the_next_request_on(
    tokens: Tokens, clock: StillClock
) -> None:
    _, revoked = tokens.create("ada", [Scope.READ])
    _, old = tokens.create("grace", [Scope.READ], days=2)
    first = tokens.revoke("ada")
    clock.advance(timedelta(days=1))

    assert tokens.revoke("ada") == first
    assert first.revoked_at == AT
    with pytest.raises(CredentialMissingError):
        tokens.check(revoked, Scope.READ)
    assert tokens.check(old, Scope.READ).name == "grace"
    clock.advance(timedelta(days=1))
    with pytest.raises(CredentialMissingError):
        tokens.check(old, Scope.READ)
    with pytest.raises(NotFoundError, match="no token called 'alan'"):
        tokens.revoke("alan")


def test_the_last_use_is_kept_to_the_minute(tokens: Tokens, clock: StillClock) -> None:
    _, secret = tokens.create("ada", [Scope.READ])

    def used_after(seconds: int) -> timedelta | None:
        clock.advance(timedelta(seconds=seconds))
        tokens.check(secret, Scope.READ)
        at = tokens.everything()[0].last_used_at
        return None if at is None else at - AT

    assert tokens.everything()[0].last_used_at is None
    assert [used_after(seconds) for seconds in (5, 30, 29, 1)] == [
        timedelta(seconds=5),
        timedelta(seconds=5),
        timedelta(seconds=5),
        timedelta(seconds=5) + USE_NOTED_EVERY,
    ]


def test_a_refused_use_is_no_use(tokens: Tokens) -> None:
    _, secret = tokens.create("ada", [Scope.READ])
    with pytest.raises(CredentialRefusedError):
        tokens.check(secret, Scope.ACT)
    assert tokens.everything()[0].last_used_at is None


@pytest.mark.parametrize(
    ("name", "scopes", "days", "told"),
    [
        ("", [Scope.READ], None, "no name"),
        ("two words", [Scope.READ], None, "no name"),
        ("x" * 64, [Scope.READ], None, "no name"),
        ("ada\n", [Scope.READ], None, "no name"),
        ("ada", [], None, "without a scope"),
        ("ada", [Scope.READ], 0, "1 to 3650 days"),
        ("ada", [Scope.READ], 3651, "1 to 3650 days"),
        ("taken", [Scope.READ], None, "take another name"),
    ],
)
def test_a_token_that_cannot_be_made_says_why(
    tokens: Tokens, name: str, scopes: list[Scope], days: int | None, told: str
) -> None:
    tokens.create("taken", [Scope.READ])
    tokens.revoke("taken")
    with pytest.raises(TokenError, match=told):
        tokens.create(name, scopes, days=days)
    assert [one.name for one in tokens.everything()] == ["taken"]


def test_making_and_revoking_are_written_down(tokens: Tokens) -> None:
    tokens.create("ada", [Scope.ACT])
    tokens.revoke("ada")
    with tokens.database.reading() as session:
        log = audit.history(session, AuditSubject.TOKEN, "ada")
    assert [(entry.what, entry.via) for entry in log] == [("create", "shell"), ("revoke", "shell")]
    assert log[0].details == {"scopes": ["act"]}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("FORKWATCH_DATABASE_URL", raising=False)
    home = tmp_path / "home"
    home.mkdir()
    migrate.upgrade(load_settings(home=home).data_url)
    return home


def say(*words: str) -> Result:
    return CliRunner().invoke(token, list(words))


def test_the_verbs_make_list_and_revoke(home: Path) -> None:
    made = say("create", "ada", "--scope", "act", "--days", "30", "--home", str(home))
    assert made.exit_code == 0, made.output
    secret = next(line for line in made.stdout.splitlines() if read_secret(line))
    assert "may act" in made.output

    listed = say("list", "--home", str(home))
    assert secret not in listed.stdout
    assert "ada  act" in listed.stdout
    assert "never used" in listed.stdout
    gone = say("revoke", "ada", "--home", str(home))
    assert "token ada is revoked" in gone.stdout
    [told] = json.loads(say("list", "--home", str(home), "--json").stdout)
    assert (told["name"], told["scopes"]) == ("ada", ["act"])
    assert told["revoked_at"] is not None
    assert "revoked 20" in say("list", "--home", str(home)).stdout


def test_the_verbs_say_what_is_wrong_in_one_line(home: Path, tmp_path: Path) -> None:
    twice = [say("create", "ada", "--home", str(home)) for _ in range(2)]
    assert twice[0].exit_code == 0
    assert isinstance(twice[1].exception, DoorError)
    assert "take another name" in str(twice[1].exception)
    missing = say("revoke", "grace", "--home", str(home)).exception
    assert isinstance(missing, DoorError)
    old = say("list", "--home", str(tmp_path / "empty")).exception
    assert isinstance(old, DoorError)
    assert "forkwatch db upgrade" in str(old)
    odd = say("create", "alan", "--scope", "everything", "--home", str(home))
    assert odd.exit_code == 2
    assert "no scope 'everything'" in odd.output
