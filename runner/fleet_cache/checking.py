"""Checking: whether this machine can use the fleet's cache, before a job goes on without it.

The runner's settings come in, checks for `forkwatch doctor` go out; none where no cache is set. A
small object is written and read back, one for each machine, and stays where it is.
"""

from __future__ import annotations

import hashlib
import platform
import time
from typing import TYPE_CHECKING, Final

from runner import clock
from runner.errors import OperatorError
from runner.fleet_cache.address import address_of
from runner.fleet_cache.errors import AwayError, FleetCacheError
from runner.fleet_cache.notes import FORM, Level
from runner.host.checks import Check

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner.fleet_cache.address import Address
    from runner.fleet_cache.places import Patience, Place
    from runner.settings import RunnerSettings

_NAME: Final = "fleet cache"
#: A person waits for the answer: one try, and half a minute at the most.
_HURRY_S: Final = 10.0
#: What is written is a time.
_BYTES_MAX: Final = 200


def cache_checks(settings: RunnerSettings, patience: Patience | None = None) -> Sequence[Check]:
    """Return what `forkwatch doctor` says of the fleet's cache; nothing where none is set.

    Args:
        settings: Of the runner.
        patience: How long to wait for a store; some seconds where None.
    """
    try:
        address = address_of(settings.cache_url, endpoint=settings.cache_endpoint)
    except OperatorError as error:
        advice = "every job ends at this: set it right, or take it out of the environment"
        return [Check(name=_NAME, ok=False, found=str(error), advice=advice, fatal=True)]
    if address is None:
        return []

    # Loaded here, because most machines share nothing.
    from runner.fleet_cache import places  # noqa: PLC0415  see above

    hurried = patience or places.Patience(request_s=_HURRY_S, retries=0, retries_s=_HURRY_S)
    began = time.monotonic()
    try:
        did = _used(places.open_place(address, hurried), writes=settings.cache_writes)
    except FleetCacheError as error:
        return [_away(address, str(error))]
    found = f"{address}: {did} in {time.monotonic() - began:.2f} s"
    return [Check(name=_NAME, ok=True, found=found)]


def _used(place: Place, *, writes: bool) -> str:
    """Return what could be done there.

    Raises:
        FleetCacheError: Not what the settings say that it is for.
    """
    names = {level: _name(level) for level in Level}
    if not writes:
        for name in names.values():
            place.get(name, bytes_max=_BYTES_MAX)
        return "read"
    said = clock.now().isoformat().encode()
    done, refused = [], []
    for level, name in names.items():
        try:
            place.put(name, said, anew=True)
        except AwayError as error:
            refused.append(f"{level}: {error}")
            continue
        if place.get(name, bytes_max=_BYTES_MAX) != said:
            raise AwayError("what was written just now is not what is read")
        done.append(str(level))
    if not done:
        raise AwayError(refused[0])
    # A runner of strangers' code has a key for that level alone, and is right to have no other.
    return f"{' and '.join(done)} written and read" + (f" ({refused[0]})" if refused else "")


def _name(level: Level) -> str:
    """Return the name of this machine's own object; a host's name may have anything in it."""
    about = hashlib.sha256(platform.node().encode(errors="replace")).hexdigest()[:16]
    return f"{FORM}/{level}/doctor/{about}"


def _away(address: Address, why: str) -> Check:
    if address.folder is not None:
        advice = f"make or mount {address.folder}, and let the user of the runner write there"
    else:
        advice = (
            "look at AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and "
            "FORKWATCH_CACHE_ENDPOINT in the runner's environment, and at the bucket's policy"
        )
    return Check(
        name=_NAME,
        ok=False,
        found=f"{address}: {why}",
        advice=f"{advice}; until then this machine makes everything itself",
    )
