"""The views: invariants that trainers, critics and SQL users rely on, over a scripted run and random episodes."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.evaluation import Verdict
from schemas.parameters import LabelParameters
from stages.export.columns import Episode
from stages.export.messages import conversation_text
from stages.export.views import VIEWS
from stages.export.views.prompt_completion import MAX_WEIGHT, weight
from stages.label import label
from tests.factories import Outcome, candidate, evaluation, task, trajectory

TASK = task()
OUTCOMES = st.builds(
    Outcome,
    st.sampled_from(Verdict),
    st.one_of(st.none(), st.floats(0.2, 10)),
    st.one_of(st.none(), st.floats(0.2, 10)),
)
ENDS = st.sampled_from(["stopped", "turn_limit", "budget", "policy_error"])
BY_NAME = {view.name: view for view in VIEWS}


@st.composite
def groups(draw):
    """The episodes of one task, labelled together."""
    trajectories, candidates, evaluations = [], [], []
    for number in range(draw(st.integers(1, 3))):
        actions = []
        for step, outcome in enumerate(draw(st.lists(OUTCOMES, min_size=1, max_size=4))):
            tried = candidate(TASK, f"# {number}.{step}\n")
            timed = outcome.speedup if outcome.verdict in (Verdict.CORRECT, Verdict.SUSPECT) else None
            actions.append((tried, evaluation(tried, outcome.verdict, speedup=timed, compiled=outcome.compiled)))
        candidates += [tried for tried, _ in actions]
        evaluations += [judged for _, judged in actions]
        words = draw(st.sampled_from(["That is all.", ""]))
        trajectories.append(trajectory(TASK, actions, episode=number, stop_reason=draw(ENDS), last_words=words))
    gamma = draw(st.sampled_from([1.0, 0.9]))
    rows = label(trajectories, evaluations, [TASK], LabelParameters(gamma=gamma))
    known = {one.evaluation_id: one for one in evaluations}, {one.candidate_id: one for one in candidates}
    return gamma, [Episode(row, TASK, *known) for row in rows]


@given(groups())
@settings(max_examples=50)
def test_transitions_form_an_episode(group):
    gamma, episodes = group
    for episode in episodes:
        rows = BY_NAME["transitions_text"].rows(episode)
        assert [row["step"] for row in rows] == list(range(len(rows)))
        assert sum(row["reward"] for row in rows) == episode.labelled.return_total
        assert all(before["next_obs"] == after["obs"] for before, after in pairwise(rows))
        assert all(row["next_obs"].startswith(row["obs"]) and row["action"] in row["next_obs"] for row in rows)
        assert not any(row["terminated"] or row["truncated"] for row in rows[:-1])
        assert rows[-1]["terminated"] != rows[-1]["truncated"]
        assert rows[-1]["terminated"] == (episode.labelled.trajectory.stop_reason == "stopped")
        returns = 0.0
        for row in reversed(rows):
            returns = row["reward"] + gamma * returns
            assert row["return_to_go"] == pytest.approx(returns)


@given(groups())
@settings(max_examples=50)
def test_prompts_end_with_the_user_and_completions_are_one_answer(group):
    for episode in group[1]:
        rows = BY_NAME["prompt_completion"].rows(episode)
        assert [row["turn"] for row in rows] == [step.turn for step in episode.labelled.steps]
        for row in rows:
            roles = [message["role"] for message in [*row["prompt"], *row["completion"]]]
            assert roles == ["system", *["user", "assistant"] * (row["step"] + 1)]
            assert len(row["completion"]) == 1
            assert row["weight"] == weight(row["advantage"])


@given(groups())
@settings(max_examples=50)
def test_conversations_are_those_of_successful_episodes_and_end_with_the_assistant(group):
    for episode in group[1]:
        rows = BY_NAME["sft_plain"].rows(episode)
        assert len(rows) == (episode.labelled.final_reward > 0)
        for row in rows:
            assert [message["role"] for message in row["messages"]][0::2][1:] == ["assistant"] * (
                len(row["messages"]) // 2
            )
            assert row["messages"][-1]["role"] == "assistant"
            assert row["verdict"] == "correct"


@given(groups())
@settings(max_examples=25)
def test_every_row_has_exactly_the_declared_columns(group):
    for view in VIEWS:
        names = [column.name for column in view.columns]
        assert len(names) == len(set(names))
        for episode in group[1]:
            assert all(row.keys() == set(names) for row in view.rows(episode))


def test_the_turn_that_ends_an_episode_is_an_action_without_a_verdict(run):
    stops = [row for row in run.rows("transitions_text") if row["action_kind"] == "stop"]
    assert len(stops) == sum(1 for row in run.labelled if row.trajectory.terminated)
    assert {(row["reward"], row["evaluation_id"], row["advantage"], row["terminated"]) for row in stops} == {
        (0.0, None, None, True)
    }


def test_a_prompt_is_the_state_of_its_transition(run):
    states = {(row["trajectory_id"], row["turn"]): row["obs"] for row in run.rows("transitions_text")}
    for row in run.rows("prompt_completion"):
        assert conversation_text(row["prompt"]) == states[row["trajectory_id"], row["turn"]]


def test_speeds_come_with_their_interval_and_only_where_they_may_be_claimed(run):
    for row in run.rows("prompt_completion"):
        for name in ("speedup_eager", "speedup_compiled"):
            if row["verdict"] == "correct":
                assert row[f"{name}_low"] < row[name] < row[f"{name}_high"]
            else:
                assert (row[f"{name}_low"], row[name], row[f"{name}_high"]) == (None, None, None)


@given(st.floats(-50, 800))
def test_weights_are_clipped_exponentials(advantage):
    assert 0 < weight(advantage) <= MAX_WEIGHT * (1 + 1e-12)
    if advantage < 2.9:
        assert weight(advantage) == math.exp(advantage)


def test_no_advantage_weighs_one():
    assert weight(None) == 1.0
