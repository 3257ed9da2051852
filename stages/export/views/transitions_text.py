"""States, actions and rewards as text, for critics and offline reinforcement learning."""

from __future__ import annotations

from stages.export.columns import (
    FLAG,
    JUDGEMENT,
    ORIGIN,
    STEP,
    TEXT,
    Column,
    Episode,
    Row,
    judgement,
    origin,
    step_cells,
    unjudged_cells,
)
from stages.export.messages import Message, alternate, conversation_text, plain_messages
from stages.export.views.base import View


def rows(episode: Episode) -> list[Row]:
    """One row for each action: every judged submission, and the turn by which the policy ended the episode.

    Ending is an action that earns 0: the verdict before it is a state like any other, and a critic that never sees
    the choice cannot value it. Exactly one of `terminated` and `truncated` is true in the last row and neither before
    it, each `next_obs` is the next row's `obs`, and the rewards add up to the episode's return.
    """
    labelled = episode.labelled
    messages = plain_messages(labelled.trajectory)
    turns = [step.turn for step in labelled.steps] + _ending(episode, messages)
    until = [alternate(messages[: turn + 1]) for turn in turns]
    states = [conversation_text(before) for *before, _ in until] + [conversation_text(alternate(messages))]
    made: list[Row] = []
    for number, turn in enumerate(turns):
        step = labelled.steps[number] if number < len(labelled.steps) else None
        last = number == len(turns) - 1
        made.append(
            {
                "obs": states[number],
                "action": until[number][-1]["content"],
                "next_obs": states[number + 1],
                "action_kind": "stop" if step is None else "submit",
                "terminated": last and labelled.trajectory.terminated,
                "truncated": last and labelled.trajectory.truncated,
                **(unjudged_cells(turn, number) if step is None else step_cells(step, number)),
                **judgement(episode, None if step is None else step.evaluation_id),
                **origin(episode),
            }
        )
    return made


def _ending(episode: Episode, messages: list[Message]) -> list[int]:
    """The turn by which the policy ended the episode; none where it was cut, or ended without a word of its own."""
    trajectory = episode.labelled.trajectory
    last = len(trajectory.turns) - 1
    spoke = messages[last]["role"] == "assistant" and messages[last]["content"] != ""
    submitted = episode.labelled.steps[-1].turn == last
    return [last] if trajectory.terminated and spoke and not submitted else []


TRANSITIONS_TEXT = View(
    name="transitions_text",
    says="One row an action, failures included: every judged submission, and the turn that ended the episode.",
    serves="value pre-training and offline reinforcement learning on text",
    columns=(
        Column("obs", TEXT, "the conversation so far, each message under a heading with its role"),
        Column("action", TEXT, "the assistant's message"),
        Column("next_obs", TEXT, "the conversation after the action and its verdict; the next row's `obs`"),
        Column("action_kind", TEXT, "`submit`, or `stop` for the turn that ended the episode (reward 0)"),
        Column("terminated", FLAG, "the policy ended the episode here"),
        Column("truncated", FLAG, "a limit ended the episode here; never both"),
        *STEP,
        *JUDGEMENT,
        *ORIGIN,
    ),
    rows=rows,
    indivisible="episode",
)
