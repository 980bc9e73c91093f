"""What holds for every test: nobody looks at the host, and Hypothesis measures no time."""

from __future__ import annotations

import hypothesis
import pytest

# How long an example takes is the machine's matter; speed belongs in benchmarks/.
hypothesis.settings.register_profile("forkwatch", deadline=None)
hypothesis.settings.load_profile("forkwatch")


@pytest.fixture(scope="session", autouse=True)
def unwatched_host():
    """Let runners that tests start measure on a machine that the tests themselves keep busy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FORKWATCH_WATCH_HOST", "false")
        yield
