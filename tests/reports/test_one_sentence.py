"""One function writes the sentence: check, comment, issue and Slack say the same of a pair."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from reports.alert import alert_markdown
from reports.check import judged_check
from reports.comment import comment_markdown
from reports.issue import issue_markdown
from reports.rows import rows_of_pair
from reports.sentence import sentence
from reports.slack import alert_message
from tests.fakes.run_documents import sha
from tests.fakes.stored_fork import a_pair
from tests.fakes.verdicts import a_verdict

if TYPE_CHECKING:
    from detectors.verdict import Verdict

SLOWER = a_verdict(-9.1, low=-10.0, high=-8.2)
FASTER = a_verdict(7.3, low=6.1, high=8.4)
SAME = a_verdict(-0.1, low=-1.2, high=0.9, p_value=0.6)
UNSURE = a_verdict(-4.0, low=-9.0, high=1.0, p_value=0.1, detectable=6.0)
GOOD, BAD = sha("4"), sha("5")


def plain(markdown: str) -> str:
    """Return Markdown of ours without what makes words inert."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown)


@pytest.mark.parametrize(
    "found",
    [
        {"scan": SLOWER, "point-query": SAME},
        {"scan": SLOWER, "point-query": FASTER},
        {"scan": SLOWER, "point-query": UNSURE},
        {"scan": SLOWER, "point-query": SLOWER},
    ],
)
def test_everybody_is_told_the_same(found: dict[str, Verdict]) -> None:
    document = a_pair("run-5c", BAD, GOOD).build()
    rows = rows_of_pair(document, found)
    said = sentence(found, at=BAD)
    first = said.split("; ")[0]

    check = judged_check(rows, document=document)
    slack = alert_message(rows, document=document, good=GOOD, alert="alert-1")

    # A title has room for whole clauses, of which the first is what became slower.
    assert check.title.startswith(first)
    assert said.startswith(check.title)
    # And what it has no room for stands below it.
    assert check.title == said or f"**{said}**" in plain(check.summary)
    assert f"**{said}**" in plain(comment_markdown(rows, document=document))
    assert f"**{said}**" in plain(issue_markdown(rows, document=document, good=GOOD))
    assert said in str(slack.blocks)
    assert said in slack.text
    assert said in plain(alert_markdown(rows, document=document, good=GOOD, page="http://fw/a"))


def test_the_order_of_workloads_changes_no_word() -> None:
    found = {"scan": SAME, "insert": SAME, "delete": UNSURE, "point-query": SLOWER, "a": SLOWER}
    turned = dict(reversed(found.items()))

    assert sentence(found, at=BAD) == sentence(turned, at=BAD)
