"""A differential flame graph: two profiles in one self-contained SVG file.

Folded stacks of both sides come in, text goes out. A box is a function under its callers; its width
is the mean of both sides' cost, so that what one side lost stays visible; red is what the candidate
spends more, blue what it spends less (after Gregg, "Differential Flame Graphs", 2014, who takes the
width of one side). There is no script in the file, and every name is escaped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_WIDTH: Final = 1200.0
_LINE: Final = 17
_HEAD: Final = 44
_CHARACTER: Final = 6.6
#: Boxes narrower than this many pixels cannot be seen and are left out.
_NARROWEST: Final = 0.4
#: Deeper than the kernel's stacks; a limit for profiles from elsewhere.
_DEPTH_MAX: Final = 256
#: A difference of this share of the whole has the full colour.
_FULL: Final = 0.05


@dataclass(kw_only=True)
class _Box:
    name: str
    baseline: float = 0.0
    candidate: float = 0.0
    inner: dict[str, _Box] = field(default_factory=dict)

    @property
    def width(self) -> float:
        return (self.baseline + self.candidate) / 2


def draw(
    baseline: Mapping[str, int],
    candidate: Mapping[str, int],
    *,
    title: str,
    baseline_cost: float = 1.0,
    candidate_cost: float = 1.0,
    unit: str = "of the time",
) -> str:
    """Return an SVG document that shows how two profiles differ.

    Args:
        baseline: Samples by folded stack.
        candidate: Likewise.
        title: Stands above.
        baseline_cost: What all samples of the side stand for, such as CPU microseconds per
            operation; 1 compares shares.
        candidate_cost: Likewise.
        unit: Of these costs.
    """
    root = _Box(name="all")
    _add(root, baseline, "baseline", baseline_cost)
    _add(root, candidate, "candidate", candidate_cost)
    boxes = [] if root.width <= 0 else list(_boxes(root, root, 0.0, 0))
    depth = max((level for _, _, level in boxes), default=0)
    height = _HEAD + (depth + 1) * _LINE + 8
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH:.0f}" height="{height}" '
        f'viewBox="0 0 {_WIDTH:.0f} {height}" font-family="monospace" font-size="11">'
        '<rect width="100%" height="100%" fill="#ffffff"/>'
        f'<text x="6" y="17" font-size="14">{escape(title)}</text>'
        '<text x="6" y="34" fill="#555555">red: the candidate spends more; blue: less; '
        "width: mean of both</text>"
    )
    drawn = (
        _drawn(box, root, at, height - (level + 1) * _LINE - 4, unit) for box, at, level in boxes
    )
    return "\n".join([head, *drawn, "</svg>\n"])


def _add(root: _Box, stacks: Mapping[str, int], side: str, cost: float) -> None:
    total = sum(stacks.values())
    for stack, samples in sorted(stacks.items()):
        value = cost * samples / total
        box = root
        setattr(box, side, getattr(box, side) + value)
        for name in stack.split(";")[:_DEPTH_MAX]:
            box = box.inner.setdefault(name, _Box(name=name))
            setattr(box, side, getattr(box, side) + value)


def _boxes(box: _Box, root: _Box, at: float, level: int) -> Iterator[tuple[_Box, float, int]]:
    """Give the boxes that can be seen with their left edges and levels."""
    scale = _WIDTH / root.width
    if box.width * scale < _NARROWEST:
        return
    yield box, at, level
    for name in sorted(box.inner):
        yield from _boxes(box.inner[name], root, at, level + 1)
        at += box.inner[name].width * scale


def _drawn(box: _Box, root: _Box, at: float, y: int, unit: str) -> str:
    width = box.width * _WIDTH / root.width
    change = (box.candidate - box.baseline) / root.width
    strength = min(1.0, abs(change) / _FULL)
    faded = round(255 - 150 * strength)
    colour = f"rgb(255,{faded},{faded})" if change > 0 else f"rgb({faded},{faded},255)"
    told = (
        f"{box.name}: baseline {box.baseline:.4g}, candidate {box.candidate:.4g} {unit} "
        f"({100 * change:+.2f} % of the whole)"
    )
    room = int((width - 6) / _CHARACTER)
    shown = box.name if len(box.name) <= room else box.name[: max(0, room - 1)] + "\u2026"
    text = ""
    if room > 2:  # noqa: PLR2004  a letter and what stands for the rest
        text = f'<text x="{at + 3:.1f}" y="{y + 12}">{escape(shown)}</text>'
    return (
        f"<g><title>{escape(told)}</title>"
        f'<rect x="{at:.1f}" y="{y}" width="{max(0.3, width - 0.5):.1f}" height="{_LINE - 1}" '
        f'fill="{colour}" stroke="#bbbbbb" stroke-width="0.3"/>{text}</g>'
    )
