"""Mining: every operator of the installed torch that is worth a kernel, found by introspection and trial.

`candidates` lists what might be an operator and how it is called; `signature` and `domains` learn, by running tiny
calls, what it may be applied to; `operators` turns what survives into records and merges names of one computation.
"""

from stages.mine.operators import count, mine

__all__ = ["count", "mine"]
