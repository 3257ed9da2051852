"""Moves on a GPU: how many threads share a row, how many a block holds, what is kept in shared memory."""

from __future__ import annotations

from stages.rollout.policies.codegen.choices import Reuse, Sums
from stages.rollout.policies.moves.base import FUSING, Move, View, keep_reason, spare_accuracy, sums_reason
from stages.rollout.policies.workshop import Draft

TEAMS = (32, 128, 256, 512, 1024)
BLOCKS = (64, 128, 512)


def _has_rows(view: View) -> bool:
    """Whether some kernel walks rows with several threads."""
    functions = [function for segment in view.draft.generated.segments for function in segment.kernels]
    return any("lane" in function.text for function in functions)


def _team_reason(view: View, after: Draft) -> str:
    before = view.choices.team
    now = f"{before} threads share a row" if before else "The row's length chose the threads that share it"
    words = "a warp needs no barrier" if after.choices.team == 32 else "more of the row is in flight at once"
    return f"{now}. Try {after.choices.team}: {words}, and only the clock can tell what that is worth here."


def _block_reason(view: View, after: Draft) -> str:
    direction = "Smaller" if after.choices.block < view.choices.block else "Larger"
    return (
        f"{direction} blocks, {after.choices.block} threads instead of {view.choices.block}: another balance between "
        "blocks that a multiprocessor can hold and the tail when the last ones run out."
    )


def _team_move(team: int) -> Move:
    return Move(
        f"team_{team}",
        lambda choices: choices._replace(team=team),
        lambda view: (5.0 if view.choices.team == 0 else 3.0) if _has_rows(view) and view.choices.team != team else 0.0,
        _team_reason,
    )


def _block_move(block: int) -> Move:
    return Move(
        f"block_{block}",
        lambda choices: choices._replace(block=block),
        lambda view: 2.0 if view.choices.block != block else 0.0,
        _block_reason,
    )


MOVES: tuple[Move, ...] = (
    *FUSING,
    Move(
        "scratch",
        lambda choices: choices._replace(reuse=Reuse.KEEP if choices.reuse is Reuse.RECOMPUTE else Reuse.RECOMPUTE),
        lambda view: 7.0 if view.choices.reuse is Reuse.RECOMPUTE else 4.0,
        keep_reason,
    ),
    Move(
        "float_sums",
        lambda choices: choices._replace(sums=Sums.BLOCKED),
        lambda view: 9.0 if view.choices.sums is Sums.DOUBLE and spare_accuracy(view) else 0.0,
        sums_reason,
    ),
    *[_team_move(team) for team in TEAMS],
    *[_block_move(block) for block in BLOCKS],
)
