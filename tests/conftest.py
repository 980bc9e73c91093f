"""What holds for every test: nobody looks at the host, and chance and the machine's pace fail none.

Hypothesis measures no time and draws the same examples each time; Python reads the source of one
module at a time.
"""

from __future__ import annotations

import ast
import functools
import threading
from collections import Counter
from typing import Any

import hypothesis
import pytest

# How long an example takes is the machine's matter; speed belongs in benchmarks/. What is drawn
# anew each time would some day fail for somebody who changed something else.
hypothesis.settings.register_profile(
    "forkwatch",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("forkwatch")

_PARSE = ast.parse
_ONE_AT_A_TIME = threading.RLock()


@functools.wraps(_PARSE)
def _parse_alone(*arguments: Any, **named: Any) -> Any:
    with _ONE_AT_A_TIME:
        return _PARSE(*arguments, **named)


# Python 3.11 fails with "AST constructor recursion depth mismatch" where two threads read source
# (CPython's issue 106905): pytest does for each module of a plugin that is imported late, and
# `traceback` does for each line that the log of a flow shows.
ast.parse = _parse_alone


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
