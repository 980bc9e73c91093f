"""Places: the folder or the S3-compatible store behind the fleet's cache.

Names and bytes go in, bytes come out, each request bounded in size and time. The only module that
knows obstore, which is loaded when a cache is first used. What the bytes mean it must not know.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Protocol

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotSupportedError
from obstore.store import LocalStore, S3Store

from runner import shell
from runner.fleet_cache.errors import AwayError, DamagedPackError

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig, S3Config

    from runner.fleet_cache.address import Address

#: Seconds to be connected: a store in the same building answers in milliseconds, one on another
#: continent within one second.
CONNECT_S: Final = 5.0
#: Seconds for one request, which moves 16 MiB at the most: half a megabyte per second.
REQUEST_S: Final = 30.0
#: Times that a request is tried again, within `RETRIES_S` of the first.
RETRIES: Final = 2
RETRIES_S: Final = 60.0
_MESSAGE_LENGTH: Final = 200
#: Whatever obstore raises besides that there is no such object. It raises Python's own errors for
#: Python's own kinds of trouble.
_FAULTS: Final = (BaseError, OSError, ValueError, NotImplementedError)


class Place(Protocol):
    """Objects under names, none of them ever changed but to be repaired."""

    def get(self, name: str, *, bytes_max: int) -> bytes | None:
        """Return an object, or None if there is none.

        Raises:
            AwayError: The place does not answer, or not in time.
            DamagedPackError: The object is larger than `bytes_max`.
        """

    def put(self, name: str, content: bytes, *, anew: bool = False) -> None:
        """Store an object; one that is there stays, unless it is to be made `anew`.

        Raises:
            AwayError: The place does not answer, does not take it, or not in time.
        """


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long to wait for a store."""

    connect_s: float = CONNECT_S
    request_s: float = REQUEST_S
    retries: int = RETRIES
    retries_s: float = RETRIES_S


def open_place(address: Address, patience: Patience | None = None) -> Place:
    """Return the place at an address; a bucket is not asked for anything yet.

    Raises:
        AwayError: There is no such folder, or the store's configuration is not understood.
    """
    if address.folder is not None and not address.folder.is_dir():
        # Not made here: where a share is not mounted, each machine would fill a folder of its own.
        raise AwayError(f"there is no folder {address.folder}; make it, or mount it")
    store: ObjectStore
    try:
        if address.folder is not None:
            store = LocalStore(address.folder)
        else:
            store = _bucket(address, patience or Patience())
    except _FAULTS as error:
        raise _away("it cannot be opened", error) from error
    return _Store(store)


def _bucket(address: Address, patience: Patience) -> S3Store:
    """Return the bucket; obstore reads credentials and region from AWS' usual variables."""
    config: S3Config = {"endpoint": address.endpoint} if address.endpoint else {}
    client: ClientConfig = {
        "allow_http": address.endpoint.startswith("http://"),
        "connect_timeout": timedelta(seconds=patience.connect_s),
        "timeout": timedelta(seconds=patience.request_s),
    }
    retry: RetryConfig = {
        "max_retries": patience.retries,
        "retry_timeout": timedelta(seconds=patience.retries_s),
    }
    return S3Store(
        address.bucket,
        prefix=address.prefix or None,
        config=config,
        client_options=client,
        retry_config=retry,
    )


class _Store:
    """A place that obstore reaches."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def get(self, name: str, *, bytes_max: int) -> bytes | None:
        try:
            found = obstore.get(self._store, name)
            content = bytes(found.bytes()) if found.meta["size"] <= bytes_max else None
        except FileNotFoundError:
            return None
        except _FAULTS as error:
            raise _away("it cannot be read", error) from error
        if content is None:
            raise DamagedPackError(f"{name} has more than {bytes_max} bytes")
        return content

    def put(self, name: str, content: bytes, *, anew: bool = False) -> None:
        try:
            if anew:
                obstore.put(self._store, name, content, mode="overwrite", use_multipart=False)
            else:
                with contextlib.suppress(AlreadyExistsError, FileExistsError):
                    self._create(name, content)
        except _FAULTS as error:
            raise _away("it cannot be written", error) from error

    def _create(self, name: str, content: bytes) -> None:
        """Store an object unless there is one.

        Raises:
            AlreadyExistsError: There is one.
        """
        try:
            obstore.put(self._store, name, content, mode="create", use_multipart=False)
        except (NotSupportedError, NotImplementedError):
            # With AWS_CONDITIONAL_PUT=disabled, for stores that refuse the condition. Two machines
            # may then both write, the same bytes or an equal artifact.
            try:
                obstore.head(self._store, name)
            except FileNotFoundError:
                obstore.put(self._store, name, content, mode="overwrite", use_multipart=False)


def _away(what: str, error: Exception) -> AwayError:
    said = shell.readable(str(error)).strip().partition("\n")[0]
    return AwayError(f"{what}: {said[:_MESSAGE_LENGTH] or type(error).__name__}")
