"""The budget: minutes shared out between parts, what one leaves over going to the next."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Shares of the whole, by what the aims need: sds and pairs want many units, a suite wants two.
SHARES: Final = {"knob": 0.03, "harness": 0.09, "suite": 0.22, "pairs": 0.36, "aa": 0.3}


@dataclass(kw_only=True)
class Budget:
    """What is left, and whether another unit of the part under way fits."""

    seconds: float
    #: Parts in the order in which they are measured.
    parts: Sequence[str]
    now: Callable[[], float] = time.monotonic
    _ends_at: float = 0.0
    _took: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start the clock."""
        self._began = self.now()

    @property
    def left_s(self) -> float:
        """Seconds of the whole that are left."""
        return self._began + self.seconds - self.now()

    def begin(self, part: str) -> None:
        """Give a part its share of what is left, by its weight among those not begun yet."""
        rest = self.parts[list(self.parts).index(part) :]
        share = SHARES[part] / sum(SHARES[name] for name in rest)
        self._ends_at = self.now() + share * max(0.0, self.left_s)
        self._took = []

    def fits(self) -> bool:
        """Whether a unit, taking what earlier ones of this part took, ends within the share."""
        usual = median(self._took) if self._took else 0.0
        return self.now() + usual < self._ends_at

    def spent(self, seconds: float) -> None:
        """Remember how long a unit took."""
        self._took.append(seconds)
