"""The one exception by which the sandbox says "this was our failure, not the candidate's"."""


class SandboxFault(Exception):
    """Infrastructure failed (no compiler, disk full, lost process): retry, never a verdict."""
