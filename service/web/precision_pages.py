"""The page about precision: how many alarms were true, by workload, host class and detector.

A database comes in, a router goes out. The counts are made by `store.precision` from what people
said about alerts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import APIRouter

from service.core.precision import share_interval
from service.store import precision
from service.web.rendering import PageRoute, render_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastapi.responses import HTMLResponse

    from service.core.precision import PrecisionFigure
    from service.store.database import Database


@dataclass(frozen=True, kw_only=True)
class PrecisionLine:
    """A group of alarms on the list."""

    figure: PrecisionFigure
    #: Share and interval in words, such as `92 % (65 to 99)`.
    share: str


def precision_pages_router(database: Database) -> APIRouter:
    """Return the router of the page about precision."""
    router = APIRouter(route_class=PageRoute, include_in_schema=False)

    @router.get("/precision")
    def show() -> HTMLResponse:
        with database.reading() as session:
            figures = precision.figures(session)
        return render_page(
            "precision.html",
            sentence=_sentence(figures),
            lines=[
                PrecisionLine(figure=figure, share=_share(figure.true_alarms, figure.false_alarms))
                for figure in figures
            ],
        )

    return router


def _sentence(figures: Sequence[PrecisionFigure]) -> str:
    """Return what all groups say together."""
    true = sum(figure.true_alarms for figure in figures)
    false = sum(figure.false_alarms for figure in figures)
    open_ = sum(figure.not_judged for figure in figures)
    if not true + false:
        verb = "waits" if open_ == 1 else "wait"
        waiting = f" {open_} {verb} for somebody's word." if open_ else ""
        return f"Nobody has called an alarm true or false yet.{waiting}"
    verb = "was" if open_ == 1 else "were"
    return (
        f"{true} of {true + false} alarms that people judged were true: {_share(true, false)}. "
        f"{open_} {verb} not judged."
    )


def _share(true: int, false: int) -> str:
    """Return the share of true alarms with its 95 % interval."""
    judged = true + false
    if not judged:
        return "not judged"
    low, high = share_interval(true, judged)
    return f"{100 * true / judged:.0f} % (95 %: {100 * low:.0f} to {100 * high:.0f})"
