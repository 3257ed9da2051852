"""One episode: asks the policy for actions, takes the verdicts in, and ends as a trajectory."""

from __future__ import annotations

from schemas.candidate import Candidate, Language, SourceFile
from schemas.evaluation import Evaluation
from schemas.task import Task
from schemas.trajectory import Role, StopReason, ToolCall, Trajectory, Turn
from stages.rollout.feedback import feedback
from stages.rollout.policies.base import Action, Brief, Observation, Policy
from stages.rollout.prompt import system_text, user_text
from stages.rollout.tools import TOOLS_JSON, submit_call


class EpisodeRun:
    """The course of an episode so far. Whoever drives it judges each candidate in between.

    Deterministic: the same brief and the same evaluations give the same trajectory, so a run that was interrupted
    is replayed from the ledger.
    """

    def __init__(self, policy: Policy, brief: Brief) -> None:
        self._policy, self._brief = policy, brief
        self._actor = policy.begin(brief)
        self._observation: Observation | None = None
        self._pending: Action | None = None
        self._submissions = 0
        self.candidates: list[Candidate] = []
        self.stop_reason: StopReason | None = None
        self._turns = [
            _turn("system", system_text(brief.baseline.hardware)),
            _turn("user", user_text(brief.task, brief.baseline)),
        ]

    def act(self) -> Candidate | None:
        """The policy's next candidate, or null once the episode has ended."""
        action = self._actor.act(self._observation)
        if action.files is None:
            self._turns.append(_turn("assistant", action.content, reasoning=action.reasoning))
            self.stop_reason = "stopped"
            return None
        if self._submissions == self._brief.turns:
            self.stop_reason = "turn_limit"
            return None
        self._submissions += 1
        self._pending = action
        candidate = make_candidate(
            self._brief.task, action.files, action.language, self._policy.name, action.parent_candidate_id
        )
        self.candidates.append(candidate)
        return candidate

    def observe(self, evaluation: Evaluation) -> None:
        """Take in the verdict on the candidate that `act` returned last."""
        action = self._pending
        if action is None or action.files is None:
            raise ValueError("no submission waits for a verdict")
        call = submit_call(self._submissions, action.files)
        text = feedback(evaluation, self._brief.task, self._brief.baseline)
        self._turns.append(
            _turn(
                "assistant",
                action.content,
                reasoning=action.reasoning,
                tool_calls=(call,),
                candidate_id=evaluation.candidate_id,
                evaluation_id=evaluation.evaluation_id,
            )
        )
        self._turns.append(_turn("tool", text, tool_call_id=call.id))
        self._observation = Observation(text, evaluation)
        self._pending = None

    def give_up(self) -> None:
        """End the episode because of a failure of ours; the submission that could not be judged is left out."""
        self._pending = None
        self.stop_reason = "fault"

    def trajectory(self) -> Trajectory:
        """The finished episode. Raises `ValueError` while it runs."""
        if self.stop_reason is None:
            raise ValueError("the episode has not ended")
        return Trajectory.create(
            task_id=self._brief.task.task_id,
            hardware_id=self._brief.baseline.hardware.hardware_id,
            policy=self._policy.name,
            policy_version=self._policy.version(),
            episode=self._brief.episode,
            turns=tuple(self._turns),
            tools_json=TOOLS_JSON,
            stop_reason=self.stop_reason,
            terminated=self.stop_reason == "stopped",
            truncated=self.stop_reason != "stopped",
        )


def make_candidate(
    task: Task, files: tuple[SourceFile, ...], language: Language, policy: str, parent: str | None
) -> Candidate:
    """A candidate with its content id; files are sorted by path."""
    return Candidate.create(
        task_id=task.task_id,
        language=language,
        files=tuple(sorted(files, key=lambda file: file.path)),
        policy=policy,
        parent_candidate_id=parent,
    )


def _turn(
    role: Role,
    content: str,
    *,
    reasoning: str | None = None,
    tool_calls: tuple[ToolCall, ...] = (),
    tool_call_id: str | None = None,
    candidate_id: str | None = None,
    evaluation_id: str | None = None,
) -> Turn:
    return Turn(
        role=role,
        content=content,
        reasoning=reasoning,
        tool_calls=tool_calls,
        tool_call_id=tool_call_id,
        candidate_id=candidate_id,
        evaluation_id=evaluation_id,
    )
