"""What parameters of the API may be, said once: names, and numbers that a database can hold.

PostgreSQL's texts have no zero byte, so nothing is called by one; a name in an address has no
slash, which would end it there.
"""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Path, Query

NAME_LENGTH_MAX: Final = 200
#: The largest number of a column of PostgreSQL's type `integer`.
NUMBER_MAX: Final = 2**31 - 1
NAME: Final = r"^[^\x00]+$"
PathName = Annotated[str, Path(max_length=NAME_LENGTH_MAX, pattern=r"^[^\x00/]+$")]
QueryName = Annotated[str | None, Query(max_length=NAME_LENGTH_MAX, pattern=NAME)]
ForkName = Annotated[
    str, Query(max_length=NAME_LENGTH_MAX, pattern=NAME, description="Name of the fork.")
]
Limit = Annotated[int, Query(ge=1, le=200, description="Rows at most.")]
