"""How the system's package lists become lists of package sources; needs no network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mariadb_source import (
    SourceError,
    deb822_sources,
    obtain_source,
    one_line_sources,
    version_of,
)

if TYPE_CHECKING:
    from pathlib import Path

STANZAS = """\
Types: deb deb-src
URIs: http://archive.example/debian
Suites: stable
Components: main

Types: deb
URIs: http://security.example/debian
Suites: stable-security
Components: main
"""


def test_every_stanza_asks_for_sources_only() -> None:
    lines = deb822_sources(STANZAS).splitlines()

    assert [line for line in lines if line.startswith("Types")] == ["Types: deb-src"] * 2
    assert lines[1:4] == STANZAS.splitlines()[1:4]


def test_one_line_lists_keep_their_options() -> None:
    text = (
        "# a comment\ndeb [signed-by=/k] http://archive.example stable main\ndeb-src http://x y z\n"
    )

    assert one_line_sources(text) == "deb-src [signed-by=/k] http://archive.example stable main\n"


def test_a_source_that_is_there_is_not_downloaded_again(tmp_path: Path) -> None:
    ready = tmp_path / "mariadb_10.11.18.orig.tar.gz"
    ready.write_bytes(b"")

    assert obtain_source(tmp_path, lists=tmp_path / "nowhere") == ready
    assert version_of(ready) == "10.11.18"


def test_no_source_lists_is_an_error_that_repeats_what_apt_said(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no MariaDB source"):
        obtain_source(tmp_path, lists=tmp_path / "nowhere")
