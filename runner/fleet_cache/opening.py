"""Opening: a job's view of the fleet's cache from the runner's settings.

Settings and the job's trust go in; out comes the cache, or None where no fleet shares anything. A
wrong setting is an error here; a place that does not answer is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.fleet_cache.address import address_of
from runner.fleet_cache.system import systems
from runner.host.machine import Machine

if TYPE_CHECKING:
    from runner.fleet_cache.cache import FleetCache
    from runner.fleet_cache.places import Place
    from runner.settings import RunnerSettings


def open_cache(settings: RunnerSettings, *, trusted: bool) -> FleetCache | None:
    """Return the fleet's cache as a job of this trust sees it, or None where there is none.

    Raises:
        OperatorError: The address is none.
    """
    address = address_of(settings.cache_url, endpoint=settings.cache_endpoint)
    if address is None:
        return None

    # Loaded here, because most machines share nothing.
    from runner.fleet_cache import places  # noqa: PLC0415  see above
    from runner.fleet_cache.cache import Bounds, FleetCache  # noqa: PLC0415  see above

    def open_place() -> Place:
        return places.open_place(address)

    return FleetCache(
        open_place,
        systems=systems(Machine()),
        trusted=trusted,
        writes=settings.cache_writes,
        bounds=Bounds(
            pack_bytes=int(settings.cache_pack_size),
            seconds=settings.cache_seconds,
            disk_reserve=int(settings.disk_reserve),
        ),
    )
