"""Whole conversations for supervised fine-tuning."""

from __future__ import annotations

from stages.export.columns import COUNT, JUDGEMENT, MESSAGES, NUMBER, ORIGIN, Column, Episode, Row, judgement, origin
from stages.export.messages import alternate, plain_messages
from stages.export.views.base import View

MIN_REWARD = 0.0
"""Episodes whose best reward is not above this teach nothing worth imitating (CUDA Agent's rejection filter)."""


def rows(episode: Episode) -> list[Row]:
    """The conversation of an episode that got somewhere; nothing for any other.

    A verdict on the last submission that nobody answered is left out: the assistant has the last word.
    """
    labelled = episode.labelled
    if labelled.final_reward is None or labelled.final_reward <= MIN_REWARD:
        return []
    messages = alternate(plain_messages(labelled.trajectory))
    while messages[-1]["role"] != "assistant":
        messages.pop()
    row: Row = {
        "messages": messages,
        "reward": labelled.final_reward,
        "return_total": labelled.return_total,
        "actions": len(labelled.steps),
        **judgement(episode, labelled.best_evaluation_id),
        **origin(episode),
    }
    return [row]


SFT_PLAIN = View(
    name="sft_plain",
    says="One row an episode whose best reward is above 0: the whole conversation, failed attempts included. The "
    "columns of the judgement are those of its best candidate.",
    serves="supervised fine-tuning; any trainer that reads chat messages",
    columns=(
        Column("messages", MESSAGES, "system, then user and assistant in turn; the assistant has the last word"),
        Column("reward", NUMBER, "best reward of the episode"),
        Column("return_total", NUMBER, "sum of the rewards of all its actions"),
        Column("actions", COUNT, "judged submissions"),
        *JUDGEMENT,
        *ORIGIN,
    ),
    rows=rows,
    indivisible="row",
)
