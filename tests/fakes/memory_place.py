"""A place of the fleet's cache in memory: it can go away, be slow, and be looked into."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.fleet_cache.errors import AwayError, DamagedPackError

if TYPE_CHECKING:
    from collections.abc import Callable


class MemoryPlace:
    """Satisfies `Place`; tests read and change `objects`."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        #: Names that were asked for or written, in order.
        self.asked: list[str] = []
        #: Requests after which it answers no more.
        self.answers: int | None = None
        #: Called at every request; a test's clock goes on here.
        self.before: Callable[[], object] = list

    def get(self, name: str, *, bytes_max: int) -> bytes | None:
        self._answer(name)
        content = self.objects.get(name)
        if content is not None and len(content) > bytes_max:
            raise DamagedPackError(f"{name} has more than {bytes_max} bytes")
        return content

    def put(self, name: str, content: bytes, *, anew: bool = False) -> None:
        self._answer(name)
        if anew or name not in self.objects:
            self.objects[name] = content

    def _answer(self, name: str) -> None:
        self.asked.append(name)
        self.before()
        if self.answers is not None and len(self.asked) > self.answers:
            raise AwayError("nobody answers")

    def names(self, part: str) -> list[str]:
        """Return the names that have `part` in them, in order."""
        return sorted(name for name in self.objects if part in name)
