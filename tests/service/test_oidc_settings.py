"""The settings of identities: they go together, are documented, and lead to no unsafe issuer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service.core.errors import SettingsError
from service.core.identity import CiSystem
from service.core.oidc_settings import PREFIX, OidcSettings, load_oidc_settings

PAGE = Path(__file__).parents[2] / "docs" / "identity.md"
OURS = "https://perf.example"


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OidcSettings.model_fields:
        monkeypatch.delenv(f"{PREFIX}{name.upper()}", raising=False)


def test_nobody_is_trusted_where_nothing_is_set() -> None:
    assert load_oidc_settings().issuers == ()


def test_each_system_is_an_issuer_with_what_its_tokens_have_to_say() -> None:
    github, buildkite = load_oidc_settings(
        audience=OURS, github_repository="acme/mysql", buildkite_pipeline="acme/perf"
    ).issuers

    assert (github.system, buildkite.system) == (CiSystem.GITHUB, CiSystem.BUILDKITE)
    assert github.keys_url == "https://token.actions.githubusercontent.com/.well-known/jwks"
    assert buildkite.keys_url == "https://agent.buildkite.com/.well-known/jwks"
    assert github.claims == {"repository": "acme/mysql"}
    assert buildkite.claims == {"organization_slug": "acme", "pipeline_slug": "perf"}
    assert github.audience == buildkite.audience == OURS


def test_a_repository_can_be_held_to_its_number_and_its_workflow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workflow = "acme/mysql/.github/workflows/perf.yml@refs/heads/main"
    monkeypatch.setenv("FORKWATCH_OIDC_AUDIENCE", OURS)
    monkeypatch.setenv("FORKWATCH_OIDC_GITHUB_REPOSITORY", "acme/mysql")
    monkeypatch.setenv("FORKWATCH_OIDC_GITHUB_REPOSITORY_ID", "74")
    monkeypatch.setenv("FORKWATCH_OIDC_GITHUB_WORKFLOW", workflow)

    [github] = load_oidc_settings().issuers
    assert github.claims == {
        "repository": "acme/mysql",
        "repository_id": "74",
        "job_workflow_ref": workflow,
    }


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ({"github_repository": "acme/mysql"}, "GITHUB_REPOSITORY needs FORKWATCH_OIDC_AUDIENCE"),
        ({"buildkite_pipeline": "acme/perf"}, "BUILDKITE_PIPELINE needs FORKWATCH_OIDC_AUDIENCE"),
        ({"audience": OURS}, "AUDIENCE needs FORKWATCH_OIDC_GITHUB_REPOSITORY or"),
        (
            {"audience": OURS, "buildkite_pipeline": "acme/perf", "github_repository_id": "74"},
            "REPOSITORY_ID needs FORKWATCH_OIDC_GITHUB_REPOSITORY",
        ),
        ({"audience": "two words"}, "FORKWATCH_OIDC_AUDIENCE='two words'"),
        ({"github_repository": "mysql"}, "owner/name"),
        ({"github_repository": "acme/../other"}, "owner/name"),
        ({"github_repository_id": "seventy"}, "a number cannot"),
        ({"github_workflow": "perf.yml"}, "forkwatch.yml@refs/heads/main"),
        ({"github_workflow": "acme/mysql/.github/workflows/perf.yml"}, "forkwatch.yml@refs"),
        ({"buildkite_pipeline": "perf"}, "organization/pipeline"),
    ],
)
def test_what_does_not_go_together_says_what_would(chosen: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_oidc_settings(**chosen)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://agent.buildkite.example",
        "https://",
        "agent.buildkite.com",
        "file:///etc/keys",
        "https://agent.buildkite.com/",
        "https://agent.buildkite.com?x=1",
        "https://agent.buildkite.com#keys",
        "https://user@agent.buildkite.com",
        "https://agent.buildkite.com:port",
        "https://[agent",
        "",
    ],
)
def test_keys_come_from_a_safe_address_or_not_at_all(url: str) -> None:
    with pytest.raises(SettingsError, match=r"FORKWATCH_OIDC_BUILDKITE_ISSUER=.*is no issuer"):
        load_oidc_settings(buildkite_issuer=url)


@pytest.mark.parametrize(
    "url", ["https://github.example/_services/token", "http://127.0.0.1:8000", "http://[::1]:80"]
)
def test_an_issuer_of_ones_own_is_an_address(url: str) -> None:
    [github] = load_oidc_settings(
        audience=OURS, github_repository="acme/mysql", github_issuer=url
    ).issuers
    assert github.keys_url == f"{url}/.well-known/jwks"


def test_every_setting_is_described_and_documented() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name, field in OidcSettings.model_fields.items():
        assert field.description
        assert f"`{PREFIX}{name.upper()}`" in page
