"""What every part of a document is made of: bounded names, texts and numbers.

A document comes from a machine that ran somebody's code, so nothing in it is unbounded.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

NAME_LENGTH_MAX: Final = 200
TEXT_LENGTH_MAX: Final = 64 * 1024

Name = Annotated[str, StringConstraints(min_length=1, max_length=NAME_LENGTH_MAX)]
Text = Annotated[str, StringConstraints(max_length=TEXT_LENGTH_MAX)]
GitHash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Part(BaseModel):
    """A part of a document: closed, unchanging, and without infinities."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
