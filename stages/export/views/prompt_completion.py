"""Single submissions with their history, reward and weight."""

from __future__ import annotations

import math

from stages.export.columns import (
    JUDGEMENT,
    MESSAGES,
    NUMBER,
    ORIGIN,
    STEP,
    Column,
    Episode,
    Row,
    judgement,
    origin,
    step_cells,
)
from stages.export.messages import alternate, plain_messages
from stages.export.views.base import View

MAX_WEIGHT = 20.0
"""Where weights are clipped, so that no single row rules a batch (as in AWR, Peng et al. 2019)."""


def rows(episode: Episode) -> list[Row]:
    """One row for each judged submission: the conversation before it, and the assistant's message.

    The turn that ends an episode earns no verdict and has no row here.
    """
    messages = plain_messages(episode.labelled.trajectory)
    made: list[Row] = []
    for number, step in enumerate(episode.labelled.steps):
        *prompt, completion = alternate(messages[: step.turn + 1])
        made.append(
            {
                "prompt": prompt,
                "completion": [completion],
                "weight": weight(step.advantage),
                **step_cells(step, number),
                **judgement(episode, step.evaluation_id),
                **origin(episode),
            }
        )
    return made


def weight(advantage: float | None) -> float:
    """The weight of advantage-weighted regression, exp(A) clipped; 1 where the group allows no comparison."""
    return 1.0 if advantage is None else math.exp(min(advantage, math.log(MAX_WEIGHT)))


PROMPT_COMPLETION = View(
    name="prompt_completion",
    says="One row a judged submission, failures included: the conversation before it, and the submission.",
    serves="rejection fine-tuning, advantage-weighted regression, offline policy gradients",
    columns=(
        Column("prompt", MESSAGES, "the conversation so far; ends with a user message"),
        Column("completion", MESSAGES, "the assistant's message"),
        Column("weight", NUMBER, f"exp(advantage), at most {MAX_WEIGHT:g}; 1 where the advantage is null"),
        *STEP,
        *JUDGEMENT,
        *ORIGIN,
    ),
    rows=rows,
    indivisible="row",
)
