"""The next change to a schedule, chosen from what the last measurement says and from what was tried before."""

from __future__ import annotations

from typing import Literal

from stages.rollout.policies.moves import cpp, cuda
from stages.rollout.policies.moves.base import Move, View, candidates, pointless

MOVES: dict[Literal["cpu", "cuda"], tuple[Move, ...]] = {"cpu": cpp.MOVES, "cuda": cuda.MOVES}

__all__ = ["MOVES", "Move", "View", "candidates", "pointless"]
