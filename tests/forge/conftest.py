"""One forge for all tests here: starting it takes longer than any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.forge.gitea import Gitea

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def forge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gitea]:
    with Gitea(tmp_path_factory.mktemp("gitea")) as running:
        yield running
