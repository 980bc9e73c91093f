"""The published schema of the run document is the one that the code has."""

from __future__ import annotations

import json
from pathlib import Path

from jsonschema import Draft202012Validator

from results.document import schema

PUBLISHED = Path(__file__).parents[2] / "docs" / "run-document.schema.json"
#: Writes the file anew.
COMMAND = (
    "python -c 'import json; from results.document import schema; "
    f"print(json.dumps(schema(), indent=2))' > docs/{PUBLISHED.name}"
)


def test_the_published_schema_is_current() -> None:
    published = json.loads(PUBLISHED.read_text())

    assert published == schema(), f"the run document has changed; run: {COMMAND}"


def test_the_published_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(json.loads(PUBLISHED.read_text()))
