"""Orders about one alert in memory, each done once for its key."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from service.core.alert_actions import next_state
from service.core.errors import ActionError

if TYPE_CHECKING:
    from service.core.alert_actions import AlertOrder
    from service.core.model import Alert


class MemoryActions:
    """One alert, whose states are those of the life cycle's table."""

    def __init__(self, alert: Alert) -> None:
        self.alert = alert
        self.orders: list[AlertOrder] = []

    def act(self, order: AlertOrder) -> Alert:
        if order.alert != self.alert.id:
            raise ActionError(f"there is no alert {order.alert}")
        if order.key not in {known.key for known in self.orders}:
            state = next_state(self.alert.state, order.action)
            self.alert = replace(self.alert, state=state)
            self.orders.append(order)
        return self.alert
