"""The client of GitHub with the one thing besides that opening issues on Gitea takes.

GitHub takes labels by their names and makes those that are missing; Gitea takes their numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.channels.github.client import GitHubClient

if TYPE_CHECKING:
    from collections.abc import Mapping


class NumberedLabels(GitHubClient):
    """Gives the numbers of labels for their names."""

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Make something; labels that are missing are made first."""
        if "labels" in body:
            body = {**body, "labels": [self._number(name) for name in body["labels"]]}
        return super().post(path, body)

    def _number(self, name: str) -> int:
        labels = f"{self.path}/labels"
        there = {label["name"]: label["id"] for label in self.items(labels)}
        if name not in there:
            there[name] = super().post(labels, {"name": name, "color": "#ededed"})["id"]
        return int(there[name])
