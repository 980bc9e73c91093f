"""Errors of the search.

BisectError    a range or a measurement that no search can be made of; says why
"""

from __future__ import annotations


class BisectError(Exception):
    """A range or a measurement that no search can be made of; the message says why."""
