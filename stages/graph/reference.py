"""Loading a reference source; the loader itself lives with the sandbox, whose judge needs it too."""

from __future__ import annotations

from sandbox.reference import Reference, load_task_source

__all__ = ["Reference", "load_task_source"]
