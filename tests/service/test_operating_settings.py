"""Settings of operating: a wrong one is named with what would be right."""

from __future__ import annotations

import pytest

from service.core.errors import SettingsError
from service.core.settings import Settings, load_settings, runner_environment


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"FORKWATCH_{name.upper()}", raising=False)


def test_people_are_sent_to_the_public_address_and_runners_here_are_not() -> None:
    settings = load_settings(public_url="https://perf.example.org", port=9000)

    assert settings.pages_url == "https://perf.example.org"
    assert settings.base_url == "http://127.0.0.1:9000"
    assert load_settings(port=9000).pages_url == "http://127.0.0.1:9000"


@pytest.mark.parametrize(
    "url", ["http://perf:8642", "https://[2001:db8::1]:8443", "http://127.0.0.1"]
)
def test_an_address_is_scheme_host_and_port(url: str) -> None:
    assert load_settings(public_url=url).pages_url == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "perf.example.org",
        "ftp://perf.example.org",
        "https://",
        "https://perf.example.org/",
        "https://perf.example.org/forkwatch",
        "https://perf.example.org?",
        "https://perf.example.org?a=1",
        "https://perf.example.org#top",
        "https://ada:secret@perf.example.org",
        "https://perf.example.org:port",
        "https://perf.example.org:0",
        "https://perf.example.org\n",
        "https://perf .example.org",
        "https://[2001:db8::1",
    ],
)
def test_a_wrong_public_address_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORKWATCH_PUBLIC_URL", url)

    with pytest.raises(SettingsError, match=r"(?s)FORKWATCH_PUBLIC_URL=.*Address of the pages"):
        load_settings()


def test_the_proxy_of_this_machine_is_believed_and_others_are_where_they_are_named() -> None:
    assert load_settings().trusted_proxy_names == ("127.0.0.1", "::1")
    assert load_settings(trusted_proxies="").trusted_proxy_names == ()
    named = load_settings(trusted_proxies="10.0.0.7, 10.1.0.0/16,fd00::/8")
    assert named.trusted_proxy_names == ("10.0.0.7", "10.1.0.0/16", "fd00::/8")


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("trusted_proxies", "*", "'\\*' is no address or network"),
        ("trusted_proxies", "127.0.0.1,proxy", "'proxy' is no address or network"),
        ("trusted_proxies", "10.0.0.1/8", "write such as"),
        ("requests_per_minute", "-1", "0 for no limit"),
        ("requests_per_minute", "many", "each address and each token"),
        ("log_format", "xml", "text or json"),
        ("disk_free_min", "lots", "Space left"),
        ("disk_free_min", "-1", "Space left"),
        ("keep_seconds_days", "-1", "0 for ever"),
        ("keep_samples_days", "36501", "0 for ever"),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(
    name: str, value: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"FORKWATCH_{name.upper()}", value)

    with pytest.raises(SettingsError, match=f"FORKWATCH_{name.upper()}=.*{told}"):
        load_settings()


def test_sizes_may_have_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORKWATCH_DISK_FREE_MIN", "2GiB")

    assert load_settings().disk_free_min == 2 * 2**30


def test_runners_learn_the_form_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORKWATCH_LOG_FORMAT", "json")

    assert runner_environment()["FORKWATCH_LOG_FORMAT"] == "json"


def test_all_secrets_are_known_as_such() -> None:
    settings = load_settings(
        github_token="one-secret",
        slack_signing_secret="another-secret-of-slack",
        dbos_url="postgresql://fw:third@db/flows",
    )

    assert set(settings.secret_values) == {"one-secret", "another-secret-of-slack", "third"}
