"""Errors of the door.

DoorError               what was asked for cannot be done; says what to do instead
├── DemoForkError       the demo fork cannot be made where it was asked for
├── EnrolError          a host cannot be enrolled, drained or retired as asked
└── InitError           no plan can be written for this folder
"""

from __future__ import annotations


class DoorError(Exception):
    """What was asked for cannot be done; the message is one line that says what to do."""


class DemoForkError(DoorError):
    """The demo fork cannot be made where it was asked for."""


class EnrolError(DoorError):
    """A host cannot be enrolled, drained or retired as asked."""


class InitError(DoorError):
    """No plan can be written for this folder."""
