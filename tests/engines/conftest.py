"""What the tests of all engines share."""

from __future__ import annotations

import pytest

from runner.settings import Home


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    return Home(tmp_path_factory.mktemp("home"))
