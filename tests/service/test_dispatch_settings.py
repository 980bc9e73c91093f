"""Settings of dispatch: each is documented, and what does not go together is said at the start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from service.app.dispatching import dispatching
from service.channels.dispatch.by_host_class import ByHostClass
from service.channels.github.connect import connect
from service.core.buildkite import BuildEnded
from service.core.dispatch_settings import DispatchSettings, load_dispatch_settings
from service.core.dispatching import RunEnded
from service.core.errors import SettingsError
from service.core.identity import CiSystem
from service.core.settings import load_settings, runner_environment
from service.store import migrate
from service.store.database import Database
from tests.fakes.memory_fork import AT, MemoryFork, MemoryRunners, StillClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.app.dispatching import Dispatching

PAGE = Path(__file__).parents[2] / "docs" / "dispatching.md"
BUILDKITE = {"dispatch_buildkite_pipeline": "acme/perf", "dispatch_buildkite_token": "secret"}
OIDC = {
    "FORKWATCH_OIDC_AUDIENCE": "https://perf.example",
    "FORKWATCH_OIDC_GITHUB_REPOSITORY": "Acme/mysql",
    "FORKWATCH_OIDC_BUILDKITE_PIPELINE": "acme/perf",
    "FORKWATCH_DISPATCH_BUILDKITE_PIPELINE": "acme/perf",
    "FORKWATCH_DISPATCH_BUILDKITE_TOKEN": "secret",
}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    url = f"sqlite:///{tmp_path / 'service.sqlite'}"
    migrate.upgrade(url)
    opened = Database(url)
    yield opened
    opened.close()


def put_together(database: Database, **chosen: Any) -> Dispatching:
    settings = load_settings(**chosen)
    return dispatching(
        settings,
        database=database,
        clock=StillClock(),
        here=MemoryRunners(MemoryFork()),
        github=connect(settings),
    )


@pytest.mark.parametrize("name", sorted(DispatchSettings.model_fields))
def test_every_setting_is_documented_with_its_default(name: str) -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `FORKWATCH_")]
    (row,) = [line for line in rows if f"`FORKWATCH_{name.upper()}`" in line]
    default = DispatchSettings.model_fields[name].default

    assert ("not set" if default is None else f"`{default}`") in row


def test_each_host_class_has_its_place() -> None:
    assert load_dispatch_settings().system_of("small") is None
    assert load_dispatch_settings(dispatch="github").system_of("small") is CiSystem.GITHUB
    chosen = load_dispatch_settings(
        dispatch="small=github, large=buildkite,own=this-machine", **BUILDKITE
    )

    assert [chosen.system_of(name) for name in ("small", "large", "own", "other")] == [
        CiSystem.GITHUB,
        CiSystem.BUILDKITE,
        None,
        None,
    ]
    assert chosen.systems == {CiSystem.GITHUB, CiSystem.BUILDKITE}
    assert load_dispatch_settings().systems == frozenset()


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"dispatch": "gitlab"}, "this-machine, github, buildkite"),
        ({"dispatch": "small=gitlab"}, "CLASS=SYSTEM"),
        ({"dispatch": "=github"}, "CLASS=SYSTEM"),
        ({"dispatch": "small=github,small=this-machine"}, "'small' is there twice"),
        ({"dispatch": "buildkite"}, "needs FORKWATCH_DISPATCH_BUILDKITE_PIPELINE"),
        (
            {"dispatch": "a=buildkite", "dispatch_buildkite_pipeline": "acme/perf"},
            "needs FORKWATCH_DISPATCH_BUILDKITE_TOKEN",
        ),
        ({"dispatch_buildkite_pipeline": "perf"}, "organization/pipeline"),
        ({"dispatch_buildkite_api_url": "http://api.example"}, "no https:// address"),
        ({"dispatch_buildkite_api_url": "https://api.example/"}, "no https:// address"),
        ({"dispatch_github_workflow": "../other.yml"}, "FORKWATCH_DISPATCH_GITHUB_WORKFLOW"),
        ({"dispatch_wait_minutes": 0}, "FORKWATCH_DISPATCH_WAIT_MINUTES=0"),
    ],
)
def test_a_wrong_value_is_said_with_what_would_be_right(chosen: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError) as trouble:
        load_dispatch_settings(**chosen)

    assert said in str(trouble.value)


def test_a_wrong_token_is_not_shown() -> None:
    with pytest.raises(SettingsError) as trouble:
        load_dispatch_settings(dispatch_buildkite_token="")

    assert "FORKWATCH_DISPATCH_BUILDKITE_TOKEN=..." in str(trouble.value)


def test_a_runner_here_does_not_get_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORKWATCH_DISPATCH_BUILDKITE_TOKEN", "secret")
    monkeypatch.setenv("FORKWATCH_HOST_CLASS", "small")

    assert "FORKWATCH_DISPATCH_BUILDKITE_TOKEN" not in runner_environment()
    assert runner_environment()["FORKWATCH_HOST_CLASS"] == "small"
    assert load_dispatch_settings().secret_values == ("secret",)


def test_without_settings_this_machine_does_everything(database: Database) -> None:
    found = put_together(database)

    assert isinstance(found.dispatcher, MemoryRunners)
    assert list(found.routers) == []
    news = RunEnded(system=CiSystem.GITHUB, external_id="1", how="failure", at=AT)
    assert not found.run_ended(news)


def test_with_a_ci_there_is_a_door_for_its_runners(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in OIDC.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("FORKWATCH_DISPATCH", "small=github,large=buildkite")
    found = put_together(database, github_repository="acme/mysql", github_token="t")

    assert isinstance(found.dispatcher, ByHostClass)
    assert len(found.routers) == 1
    ended = BuildEnded(pipeline="acme/perf", number=17, state="failed", at=AT)
    assert not found.build_ended(ended)


@pytest.mark.parametrize(
    ("dispatch", "lacks", "said"),
    [
        ("github", "FORKWATCH_OIDC_GITHUB_REPOSITORY", "FORKWATCH_OIDC_GITHUB_REPOSITORY=acme/m"),
        ("buildkite", "FORKWATCH_OIDC_BUILDKITE_PIPELINE", "FORKWATCH_OIDC_BUILDKITE_PIPELINE="),
    ],
)
def test_a_ci_whose_runs_cannot_prove_themselves_is_refused(
    database: Database, monkeypatch: pytest.MonkeyPatch, dispatch: str, lacks: str, said: str
) -> None:
    for name, value in OIDC.items():
        if name != lacks:
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("FORKWATCH_DISPATCH", dispatch)

    with pytest.raises(SettingsError, match=said):
        put_together(database, github_repository="acme/mysql", github_token="t")


def test_github_needs_its_repository(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORKWATCH_DISPATCH", "github")

    with pytest.raises(SettingsError, match="FORKWATCH_GITHUB_REPOSITORY"):
        put_together(database)
