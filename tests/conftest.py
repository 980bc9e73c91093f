"""What holds for every test: nobody looks at the host, and Hypothesis measures no time."""

from __future__ import annotations

from collections import Counter

import hypothesis
import pytest

# How long an example takes is the machine's matter; speed belongs in benchmarks/.
hypothesis.settings.register_profile("forkwatch", deadline=None)
hypothesis.settings.load_profile("forkwatch")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let the workers of xdist begin with files of few tests.

    These start servers and services and take longest. Each file goes to one worker as a whole, so
    that one of them at the end would leave the other workers with nothing to do.
    """
    if hasattr(config, "workerinput"):
        sizes = Counter(item.path for item in items)
        items.sort(key=lambda item: sizes[item.path])


@pytest.fixture(scope="session", autouse=True)
def unwatched_host():
    """Let runners that tests start measure on a machine that the tests themselves keep busy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FORKWATCH_WATCH_HOST", "false")
        yield
