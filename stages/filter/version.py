"""The version of the filter's own rules; the judge that they use has one of its own."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from sandbox.version import code_hash


@cache
def filter_version() -> str:
    """A hash of this package's code."""
    return code_hash([Path(__file__).parent])
