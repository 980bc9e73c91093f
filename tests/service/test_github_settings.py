"""The settings for GitHub: they go together, and secrets stay secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from service.channels.github.checks import GitHubChecks, GitHubStatuses
from service.channels.github.connect import connect
from service.core.errors import SettingsError
from service.core.settings import Settings, load_settings, runner_environment
from tests.fakes.github_api.credentials import private_key

if TYPE_CHECKING:
    from pathlib import Path

    from service.channels.github.connect import GitHubChannel

REPOSITORY = "acme/mariadb-fork"


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"FORKWATCH_{name.upper()}", raising=False)


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key.pem"
    path.write_text(private_key())
    return path


def connected(**chosen: Any) -> GitHubChannel:
    channel = connect(load_settings(github_repository=REPOSITORY, **chosen))
    assert channel is not None
    return channel


def test_without_a_repository_there_is_no_channel() -> None:
    assert connect(load_settings(github_token="t")) is None


def test_an_app_writes_checks_and_a_token_statuses(key_file: Path) -> None:
    app = connected(github_app_id="42", github_private_key_file=key_file)
    token = connected(github_token="secret-token")

    assert isinstance(app.checks, GitHubChecks)
    assert isinstance(token.checks, GitHubStatuses)


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"github_app_id": "42"},
        {"github_token": "t", "github_app_id": "42"},
        {"github_private_key_file": "key.pem"},
    ],
)
def test_half_a_credential_or_two_are_refused(chosen: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="needs either FORKWATCH_GITHUB_APP_ID"):
        connected(**chosen)


def test_a_key_that_does_not_sign_is_refused_before_it_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    path.write_text("-----BEGIN RSA PRIVATE KEY-----\nsecret\n-----END RSA PRIVATE KEY-----\n")

    with pytest.raises(SettingsError, match="is no RSA key in PEM") as caught:
        connected(github_app_id="42", github_private_key_file=path)
    assert "secret" not in str(caught.value)

    with pytest.raises(SettingsError, match="cannot be read"):
        connected(github_app_id="42", github_private_key_file=tmp_path / "missing.pem")


@pytest.mark.parametrize(
    "url",
    ["http://github.example/api/v3", "ftp://x", "github.com", "https://", "http://127.0.0.1.evil"],
)
def test_a_credential_never_travels_in_the_clear(url: str) -> None:
    with pytest.raises(SettingsError, match="is no https:// address"):
        connected(github_token="secret-token", github_api_url=url)


@pytest.mark.parametrize("url", ["https://github.example/api/v3/", "http://127.0.0.1:8080"])
def test_an_enterprise_server_has_an_address_of_its_own(url: str) -> None:
    connected(github_token="secret-token", github_api_url=url)


@pytest.mark.parametrize(
    "name",
    ["acme", "acme/", "/fork", "acme/fork/x", "../x", "acme/..", "a b/c", "acme/x?y", "-a/b"],
)
def test_a_repository_is_an_owner_and_a_name(name: str) -> None:
    with pytest.raises(SettingsError, match="owner/name"):
        load_settings(github_repository=name)


@pytest.mark.parametrize("name", ["acme/mariadb-fork", "acme/.github", "a1/x_y.z"])
def test_ordinary_repositories_are_taken(name: str) -> None:
    assert load_settings(github_repository=name).github_repository == name


def test_a_runner_inherits_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = [name for name, field in Settings.model_fields.items() if "Secret" in str(field)]
    for name in (*secrets, "database_url", "github_private_key_file"):
        monkeypatch.setenv(f"FORKWATCH_{name.upper()}", "a-secret")
    monkeypatch.setenv("forkwatch_github_token", "a-secret")
    monkeypatch.setenv("FORKWATCH_HOST_CLASS", "small")

    handed_on = runner_environment()

    assert len(secrets) == 5
    assert "a-secret" not in handed_on.values()
    assert handed_on["FORKWATCH_HOST_CLASS"] == "small"
    assert "PATH" in handed_on


def test_a_secret_is_not_shown_even_when_it_is_wrong() -> None:
    with pytest.raises(SettingsError, match="GITHUB_WEBHOOK_SECRET=\\.\\.\\.") as caught:
        load_settings(github_webhook_secret="too-short")

    assert "too-short" not in str(caught.value)
    shown = repr(load_settings(github_token="secret-token", github_webhook_secret="x" * 20))
    assert "secret-token" not in shown
    assert "x" * 20 not in shown
