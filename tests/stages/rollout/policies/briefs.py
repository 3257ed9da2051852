"""Briefs and verdicts for policies, from sources and from what a policy submitted."""

from __future__ import annotations

from schemas.evaluation import Evaluation, Verdict
from schemas.task import Task
from stages.rollout.episode import make_candidate
from stages.rollout.feedback import feedback
from stages.rollout.policies import policy
from stages.rollout.policies.base import Action, Brief, Episode, Observation
from tests import factories


def task(source: str) -> Task:
    """A task with this source; everything else is the factories'."""
    usual = factories.task()
    fields = {name: getattr(usual, name) for name in Task.model_fields if name != "task_id"}
    return Task.create(**{**fields, "source": source, "name": "sample task"})


def brief(source: str, *, episode: int = 0, seed: int = 0, turns: int = 6) -> Brief:
    """What a policy is told."""
    of = task(source)
    return Brief(of, factories.baseline(of), seed, episode, turns)


class Table:
    """An episode with a judge that says what the test wants."""

    def __init__(self, name: str, of: Brief) -> None:
        self.brief = of
        self.policy = policy(name)
        self.episode: Episode = self.policy.begin(of)
        self.actions: list[Action] = [self.episode.act(None)]
        self.evaluations: list[Evaluation] = []

    @property
    def last(self) -> Action:
        """The latest action."""
        return self.actions[-1]

    @property
    def text(self) -> str:
        """The latest submission's `model_new.py`."""
        assert self.last.files is not None
        return self.last.files[0].text

    @property
    def ended(self) -> bool:
        """Whether the policy has stopped."""
        return self.last.files is None

    def say(self, verdict: Verdict, speedup: float | None = None, roofline_share: float = 0.4) -> Action:
        """Judge the last submission and take the next action."""
        assert self.last.files is not None
        candidate = make_candidate(
            self.brief.task, self.last.files, self.last.language, self.policy.name, self.last.parent_candidate_id
        )
        evaluation = factories.evaluation(candidate, verdict, speedup=speedup)
        if evaluation.profile is not None:
            profile = evaluation.profile.model_copy(update={"roofline_share": roofline_share})
            evaluation = evaluation.model_copy(update={"profile": profile})
        self.evaluations.append(evaluation)
        text = feedback(evaluation, self.brief.task, self.brief.baseline)
        self.actions.append(self.episode.act(Observation(text, evaluation)))
        return self.last

    def submissions(self) -> list[str]:
        """Everything that was submitted, in order."""
        return [action.files[0].text for action in self.actions if action.files is not None]
