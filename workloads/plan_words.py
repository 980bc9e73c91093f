"""The faults of a plan's tables in words: pydantic's findings in, lines that say what to do out."""

from __future__ import annotations

import types
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from workloads.plan_values import nearest


def explain(fault: Any, root: type[BaseModel]) -> str:
    """Return one validation fault of the table `root` as a line that says what to do."""
    where = ".".join(str(step) for step in fault["loc"])
    if fault["type"] == "extra_forbidden":
        *parents, key = fault["loc"]
        return f"{where}: unknown key{nearest(str(key), known_keys(parents, root))}"
    if fault["type"] == "missing":
        return f"{where}: missing; it has to be set"
    said = str(fault["msg"]).removeprefix("Value error, ")
    # A whole table would not tell where in it to look; the message does.
    shown = "" if isinstance(fault["input"], dict) else f" (is {str(fault['input'])[:80]!r})"
    return f"{where}: {said}{shown}"


def known_keys(parents: list[int | str], root: type[BaseModel]) -> list[str]:
    """Return the keys that the table at `parents` below `root` understands."""
    model = root
    steps = list(parents)
    while steps:
        field = model.model_fields.get(str(steps.pop(0)))
        if field is None:
            return []
        inner = _table_type(field.annotation)
        if inner is None:
            return []
        if get_origin(field.annotation) is dict and steps:
            steps.pop(0)
        model = inner
    return list(model.model_fields)


def _table_type(annotation: Any) -> type[BaseModel] | None:
    """Return the table class inside an annotation such as `dict[Key, Suite]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in {dict, Union, types.UnionType, Annotated}:
        for argument in get_args(annotation):
            found = _table_type(argument)
            if found is not None:
                return found
    return None
