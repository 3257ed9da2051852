"""The version of the embedded policies: what they write depends on this folder and on how a task is traced."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from sandbox.version import code_hash

_HERE = Path(__file__).parent
_GRAPH = _HERE.parent.parent / "graph"


@cache
def policies_version() -> str:
    """A hash of the policies' code, the same for all of them: they share the generator."""
    return code_hash([_HERE, _GRAPH])
