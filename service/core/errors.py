"""Errors of the service; each carries the HTTP status that tells it.

ServiceError                       500  a bug, or nothing better is known
├── SettingsError                       a setting is wrong; the operator can fix it (exit 2)
├── NotFoundError                  404
├── ConflictError                  409  the same id with other content
│   └── BackfillRefusedError         409  in core/backfills.py
├── ActionError                    409  an order about an alert that cannot be carried out
│   ├── BisectRefusedError           409  in core/bisections.py
│   └── UnknownAlertError          404
├── TokenError                     409  a token that cannot be made
├── BackupError                         in store/backup.py
├── NotReadyError                  503  in web/health.py
├── CredentialMissingError         401
├── CredentialRefusedError         403  a credential for another job, or none of ours
├── TooLargeError                  413
├── BadDocumentError               422  only ever about a payload
└── TransientError                 503  may work if tried again
    ├── CodeHostError                   the repository could not be read
    └── DispatchError                   a runner could not be started
"""

from __future__ import annotations

from typing import ClassVar


class ServiceError(Exception):
    """Something went wrong in the service."""

    status: ClassVar[int] = 500

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class SettingsError(ServiceError):
    """A setting is wrong."""


class NotFoundError(ServiceError):
    """There is no such thing here."""

    status = 404


class ConflictError(ServiceError):
    """The same identifier is already there with other content."""

    status = 409


class ActionError(ServiceError):
    """This cannot be done about the alert now."""

    status = 409


class UnknownAlertError(ActionError):
    """There is no such alert."""

    status = 404


class TokenError(ServiceError):
    """This token cannot be made."""

    status = 409


class CredentialMissingError(ServiceError):
    """Send the job's credential as 'Authorization: Bearer ...'."""

    status = 401


class CredentialRefusedError(ServiceError):
    """This credential is not good for this job."""

    status = 403


class TooLargeError(ServiceError):
    """The request is larger than the service accepts."""

    status = 413


class BadDocumentError(ServiceError):
    """The request is not a run document."""

    status = 422


class TransientError(ServiceError):
    """Something outside the service failed; it may work if tried again."""

    status = 503


class CodeHostError(TransientError):
    """The watched repository could not be read."""


class DispatchError(TransientError):
    """A runner could not be started."""
