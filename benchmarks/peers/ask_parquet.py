"""Reads columns of Parquet files for the benchmark, so that the project itself needs no Arrow.

Runs inside its own virtual environment.
"""

from __future__ import annotations

from typing import Any

from pyarrow import parquet

from benchmarks.peers import looking


def respond(request: dict[str, Any]) -> dict[str, Any]:
    """Answer with the columns asked for, as lists; times become text."""
    table = parquet.read_table(request["path"], columns=request["columns"])
    columns = {}
    for name in request["columns"]:
        values = table[name].to_pylist()
        odd = next((value for value in values if value is not None), None)
        simple = odd is None or isinstance(odd, (int, float, str))
        columns[name] = values if simple else [str(value) for value in values]
    return {"columns": columns}


if __name__ == "__main__":
    looking.serve(respond)
