"""Realistic bugs as mechanical edits of a working candidate.

A mutation sees the text of `model_new.py` and gives an edit of one place, or nothing where it does not fit. The
catalogue is the concatenation of three lists; a new kind of bug is one function and one entry.
"""

from __future__ import annotations

from stages.rollout.policies.mutations.base import Edit, Kind, Mutation
from stages.rollout.policies.mutations.build import BUILD
from stages.rollout.policies.mutations.crash import CRASH
from stages.rollout.policies.mutations.wrong import WRONG

__all__ = ["CATALOGUE", "Edit", "Kind", "Mutation"]

CATALOGUE: tuple[Mutation, ...] = (*BUILD, *WRONG, *CRASH)
