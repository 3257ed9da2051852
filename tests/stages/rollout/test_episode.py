"""If these fail, a trajectory does not say what happened, or a replay from the ledger tells another story."""

from __future__ import annotations

import json

import pytest

from schemas.candidate import Language, SourceFile
from schemas.evaluation import Verdict
from stages.rollout.episode import EpisodeRun
from stages.rollout.policies.base import Action, Brief, Observation
from tests import factories


class Script:
    """A policy that submits a fixed list of texts and then stops."""

    name = "script"

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts
        self.seen: list[Observation | None] = []

    def version(self) -> str:
        return "1"

    def begin(self, _brief: Brief) -> Script:
        return Script(self.texts)

    def act(self, observation: Observation | None) -> Action:
        self.seen.append(observation)
        turn = len(self.seen) - 1
        files = None if turn == len(self.texts) else (SourceFile(path="model_new.py", text=self.texts[turn]),)
        return Action(f"turn {turn}", files, None, None, Language.CPP)


@pytest.fixture
def brief() -> Brief:
    task = factories.task()
    return Brief(task, factories.baseline(task), seed=0, episode=0, turns=3)


def _play(brief: Brief, texts: list[str], verdicts: list[Verdict]) -> EpisodeRun:
    run = EpisodeRun(Script(texts), brief)
    for verdict in verdicts:
        candidate = run.act()
        assert candidate is not None
        speedup = 2.0 if verdict is Verdict.CORRECT else None
        run.observe(factories.evaluation(candidate, verdict, speedup=speedup, compiled=speedup and 1.2))
    return run


def test_an_episode_reads_as_a_chat_with_tool_calls(brief: Brief):
    run = _play(brief, ["first", "second"], [Verdict.BUILD_FAILED, Verdict.CORRECT])
    assert run.act() is None
    trajectory = run.trajectory()
    assert [turn.role for turn in trajectory.turns] == ["system", "user", *["assistant", "tool"] * 2, "assistant"]
    assert (trajectory.stop_reason, trajectory.terminated, trajectory.truncated) == ("stopped", True, False)
    call = trajectory.turns[2].tool_calls[0]
    assert json.loads(call.arguments_json) == {"files": {"model_new.py": "first"}}
    assert trajectory.turns[3].tool_call_id == call.id
    assert "build_failed" in trajectory.turns[3].content
    assert "2.00x" in trajectory.turns[5].content


def test_the_same_verdicts_give_the_same_trajectory(brief: Brief):
    one, two = (_play(brief, ["a"], [Verdict.WRONG]) for _ in range(2))
    assert one.act() is two.act() is None
    assert one.trajectory() == two.trajectory()


def test_a_turn_limit_cuts_the_episode(brief: Brief):
    run = _play(brief, ["a", "b", "c", "d"], [Verdict.WRONG] * 3)
    assert run.act() is None
    assert run.trajectory().stop_reason == "turn_limit"
    assert run.trajectory().truncated


def test_a_fault_of_ours_is_never_shown_to_the_policy(brief: Brief):
    run = _play(brief, ["a", "b"], [Verdict.WRONG])
    assert run.act() is not None
    run.give_up()
    trajectory = run.trajectory()
    assert trajectory.stop_reason == "fault"
    assert [turn.role for turn in trajectory.turns] == ["system", "user", "assistant", "tool"]


def test_a_verdict_without_a_submission_is_refused(brief: Brief):
    run = _play(brief, ["a"], [])
    candidate = factories.candidate(brief.task)
    with pytest.raises(ValueError, match="no submission"):
        run.observe(factories.evaluation(candidate))
    with pytest.raises(ValueError, match="not ended"):
        run.trajectory()
