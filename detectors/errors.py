"""Errors of the statistics.

DetectorError
└── DataError     input that no result can be given for; the message says what is wrong
"""

from __future__ import annotations


class DetectorError(Exception):
    """Something in a call to the detectors is wrong."""


class DataError(DetectorError, ValueError):
    """Input that no result can be given for."""
