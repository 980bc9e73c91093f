from __future__ import annotations

from pathlib import Path

import pytest

from service.core.errors import SettingsError
from service.core.settings import Settings, load_settings


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"FORKWATCH_{name.upper()}", raising=False)


def test_both_databases_lie_in_the_home_where_nothing_is_set() -> None:
    settings = load_settings(home=Path("/var/lib/fw"))

    assert settings.data_url == "sqlite:////var/lib/fw/service.sqlite"
    assert settings.flows_url == "sqlite:////var/lib/fw/flows.sqlite"
    assert settings.base_url == "http://127.0.0.1:8642"


def test_one_url_moves_data_and_flows_to_postgresql() -> None:
    settings = load_settings(database_url="postgresql://fw@db/forkwatch")

    assert settings.flows_url == settings.data_url == "postgresql://fw@db/forkwatch"


def test_runners_here_use_the_loopback_of_a_service_that_listens_everywhere() -> None:
    assert load_settings(host="0.0.0.0").base_url == "http://127.0.0.1:8642"
    assert load_settings(host="::1", port=80).base_url == "http://[::1]:80"


def test_an_argument_beats_the_environment_and_none_is_no_argument(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORKWATCH_PORT", "9000")
    monkeypatch.setenv("FORKWATCH_HOST", "10.0.0.1")

    settings = load_settings(port=9001, host=None)
    assert (settings.port, settings.host) == (9001, "10.0.0.1")


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("port", "0", "Port to listen on"),
        ("poll_seconds", "soon", "Seconds between looks"),
        ("database_url", "mysql://db", "write sqlite:"),
        ("dbos_url", "no url", "is no URL"),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(
    name: str, value: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"FORKWATCH_{name.upper()}", value)

    with pytest.raises(SettingsError, match=f"FORKWATCH_{name.upper()}.*{told}"):
        load_settings()


def test_every_setting_is_described() -> None:
    assert all(field.description for field in Settings.model_fields.values())
