"""What the card says about the data: counted from the rows, nothing typed in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from schemas.baseline import Baseline
from schemas.evaluation import Evaluation
from schemas.hardware import Hardware
from schemas.label import LabelledTrajectory, RewardSpec, Step
from schemas.parameters import ExportParameters
from stages.export.columns import Episode
from stages.export.splits import SPLITS, Split
from stages.label.rewards import speed_label


class Span(NamedTuple):
    """Smallest and largest of some counts."""

    low: int
    high: int

    def __str__(self) -> str:
        return f"{self.low}" if self.low == self.high else f"{self.low} to {self.high}"


class Machine(NamedTuple):
    """A machine of the data; `hardware` is null where no baseline told of it."""

    hardware_id: str
    hardware: Hardware | None
    episodes: int
    tasks: int
    """Tasks with a baseline on it."""
    noise: float | None
    """Largest distance from 1 that the interval of eager against eager reaches, over its tasks."""


class SplitFacts(NamedTuple):
    """What is in one split before any view."""

    split: Split
    groups: int
    tasks: int
    episodes: int
    submissions: int
    verdicts: Mapping[str, int]


class Protocol(NamedTuple):
    """How the verdicts came about."""

    judges: tuple[str, ...]
    confinements: tuple[str, ...]
    caches: tuple[str, ...]
    checked_calls: Span | None
    rounds: Span | None
    timed_calls: Span | None
    speed_labels: int
    """Correct submissions with a speed."""
    correct: int


class Facts(NamedTuple):
    """Everything that the card's text counts."""

    machines: tuple[Machine, ...]
    protocol: Protocol
    reward_specs: tuple[RewardSpec, ...]
    splits: tuple[SplitFacts, ...]
    policies: Mapping[str, int]
    """Kept episodes by policy."""
    verdicts: Mapping[str, int]
    rewards: Mapping[float, int]
    """Submissions by reward."""
    dropped: Mapping[str, int]
    """Dropped episodes by reason."""
    languages: tuple[str, ...]
    compared: int
    """Tasks that were compared with a public benchmark."""
    nearest_score: float | None
    tasks: int
    max_chars: int
    test_share: float


def facts(
    episodes: Sequence[Episode],
    labelled: Sequence[LabelledTrajectory],
    splits: Mapping[str, Split],
    baselines: Sequence[Baseline],
    parameters: ExportParameters,
) -> Facts:
    """The facts about kept episodes; `labelled` also holds the dropped ones."""
    steps = [step for episode in episodes for step in episode.labelled.steps]
    tasks = {episode.task.task_id: episode.task for episode in episodes}
    scores = [task.nearest_score for task in tasks.values() if task.nearest_score is not None]
    specs = {episode.labelled.reward_spec.reward_spec_id: episode.labelled.reward_spec for episode in episodes}
    judged = {step.evaluation_id: episode.evaluations[step.evaluation_id] for episode, step in _pairs(episodes)}
    candidates = episodes[0].candidates if episodes else {}
    return Facts(
        machines=_machines(episodes, baselines),
        protocol=_protocol(list(judged.values())),
        reward_specs=tuple(specs[key] for key in sorted(specs)),
        splits=tuple(_split_facts(split, episodes, splits) for split in SPLITS),
        policies=count(episode.labelled.trajectory.policy for episode in episodes),
        verdicts=count(str(step.verdict) for step in steps),
        rewards=dict(sorted(Counter(step.reward for step in steps).items())),
        dropped=count(row.drop_reason for row in labelled if row.drop_reason is not None),
        languages=tuple(sorted({str(candidates[evaluation.candidate_id].language) for evaluation in judged.values()})),
        compared=len(scores),
        nearest_score=max(scores, default=None),
        tasks=len(tasks),
        max_chars=parameters.max_chars,
        test_share=parameters.test_share,
    )


def count(values: Iterable[str]) -> dict[str, int]:
    """How often each value occurs, sorted by value."""
    return dict(sorted(Counter(values).items()))


def _pairs(episodes: Sequence[Episode]) -> list[tuple[Episode, Step]]:
    return [(episode, step) for episode in episodes for step in episode.labelled.steps]


def _machines(episodes: Sequence[Episode], baselines: Sequence[Baseline]) -> tuple[Machine, ...]:
    played = Counter(episode.labelled.trajectory.hardware_id for episode in episodes)
    machines = []
    for hardware_id in sorted(played):
        own = [baseline for baseline in baselines if baseline.hardware.hardware_id == hardware_id]
        noise = max((max(b.noise.high - 1, 1 - b.noise.low) for b in own), default=None)
        hardware = min((b.hardware for b in own), key=lambda found: found.model_dump_json(), default=None)
        machines.append(Machine(hardware_id, hardware, played[hardware_id], len(own), noise))
    return tuple(machines)


def _protocol(evaluations: Sequence[Evaluation]) -> Protocol:
    profiles = [evaluation.profile for evaluation in evaluations if evaluation.profile is not None]
    return Protocol(
        judges=tuple(sorted({evaluation.judge_version for evaluation in evaluations})),
        confinements=tuple(sorted({evaluation.confinement for evaluation in evaluations})),
        caches=tuple(sorted({profile.cache for profile in profiles})),
        checked_calls=_span(e.verification.calls_planned for e in evaluations if e.verification is not None),
        rounds=_span(profile.rounds for profile in profiles),
        timed_calls=_span(profile.calls for profile in profiles),
        speed_labels=sum(1 for evaluation in evaluations if speed_label(evaluation) is not None),
        correct=sum(1 for evaluation in evaluations if evaluation.verdict == "correct"),
    )


def _span(counts: Iterable[int]) -> Span | None:
    found = sorted(counts)
    return Span(found[0], found[-1]) if found else None


def _split_facts(split: Split, episodes: Sequence[Episode], splits: Mapping[str, Split]) -> SplitFacts:
    own = [episode for episode in episodes if splits[episode.labelled.split_group] == split]
    return SplitFacts(
        split=split,
        groups=len({episode.labelled.split_group for episode in own}),
        tasks=len({episode.task.task_id for episode in own}),
        episodes=len(own),
        submissions=sum(len(episode.labelled.steps) for episode in own),
        verdicts=count(str(step.verdict) for _, step in _pairs(own)),
    )
