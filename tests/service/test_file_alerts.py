from __future__ import annotations

from typing import TYPE_CHECKING

from service.channels.file_alerts import FileAlerts
from service.core.model import Alert, AlertState
from tests.fakes.memory_fork import AT
from tests.fakes.run_documents import sha
from workloads.plan import Notify

if TYPE_CHECKING:
    from pathlib import Path

ALERT = Alert(
    id="alert-1",
    fork="demo",
    sha=sha("b"),
    subject="",
    author="",
    baseline_sha=sha("a"),
    state=AlertState.CONFIRMED,
    workloads=(),
    run="run-1",
    opened_at=AT,
)


def test_telling_twice_leaves_one_file(tmp_path: Path) -> None:
    sink = FileAlerts(tmp_path)
    first = sink.raise_alert(ALERT, "# Slower\n", Notify())
    second = sink.raise_alert(ALERT, "# Slower\n", Notify())

    assert first == second == str(tmp_path / "alerts" / "alert-1.md")
    assert [path.read_text() for path in tmp_path.rglob("*.md")] == ["# Slower\n"]
    assert [path.name for path in (tmp_path / "alerts").iterdir()] == ["alert-1.md"]


def test_a_fork_chooses_a_folder_inside_the_home_only(tmp_path: Path) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    sink = FileAlerts(home)

    inside = sink.raise_alert(ALERT, "text", Notify(alert_folder="told/here"))
    for folder in ("../outside", str(outside)):
        told = sink.raise_alert(ALERT, "text", Notify(alert_folder=folder))
        assert told == str(home / "alerts" / "alert-1.md")

    assert inside == str(home / "told" / "here" / "alert-1.md")
    assert not outside.exists()
