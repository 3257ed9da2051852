"""The embedded searcher: writes a real kernel for the task's graph, reads the verdict, and climbs.

No model, no key, no network. Each turn changes one thing for a reason that the last verdict gives; the best version is
kept, and the episode ends when the roofline is near, nothing is left to try, or the turns are used up.
"""

from __future__ import annotations

from schemas.candidate import Language
from schemas.evaluation import Evaluation, Verdict
from stages.rollout.policies import prose
from stages.rollout.policies.base import Action, Brief, Episode, Observation
from stages.rollout.policies.codegen.choices import Choices, Fusion, Pages, Reuse, Stores, Sums, Transcendentals, Vector
from stages.rollout.policies.codegen.generate import Refused, TraceFailed
from stages.rollout.policies.moves import MOVES, Move, View, candidates, pointless
from stages.rollout.policies.version import policies_version
from stages.rollout.policies.workshop import Draft, Workshop, dice

PLAIN = Choices(
    fusion=Fusion.NONE, vector=Vector.SCALAR, transcendentals=Transcendentals.LIBM, sums=Sums.DOUBLE,
    reuse=Reuse.RECOMPUTE, stores=Stores.CACHED, pages=Pages.DEFAULT,
)  # fmt: skip
"""Nothing that could surprise a compiler: where everything else fails."""

STARTS = (
    Choices(),
    PLAIN,
    Choices(fusion=Fusion.CHAINS),
    Choices(transcendentals=Transcendentals.LIBM, reuse=Reuse.RECOMPUTE),
    Choices(fusion=Fusion.NONE, sums=Sums.DOUBLE),
)
"""Where episodes begin: fused at once, or from further away."""

NEAR_ROOFLINE = 0.8
"""Share of the roofline from which another turn is not worth its effort."""

GAIN = 1.01
"""A version must be this much faster to replace the best one."""


class SchedulePolicy:
    """Opens searching episodes."""

    name = "schedule"

    def version(self) -> str:
        """A hash of the code."""
        return policies_version()

    def begin(self, brief: Brief) -> Episode:
        """An episode on the task."""
        return ScheduleEpisode(brief)


class ScheduleEpisode:
    """One climb."""

    def __init__(self, brief: Brief) -> None:
        self._brief = brief
        self._rng = dice(brief, "schedule")
        self._workshop = Workshop(brief)
        kind = brief.baseline.hardware.kind
        self._language = Language.CUDA if kind == "cuda" else Language.CPP
        self._moves = MOVES[kind]
        self._weights = {move.name: self._rng.uniform(0.7, 1.3) for move in self._moves}
        self._submitted: list[Draft] = []
        self._tried: set[str] = set()
        self._best: View | None = None
        self._pending: Move | None = None

    def act(self, observation: Observation | None) -> Action:
        """The next version, or the end of the episode with the reason."""
        if observation is None:
            return self._first()
        evaluation = observation.evaluation
        news = self._take_in(evaluation)
        if len(self._submitted) >= self._brief.turns:
            return self._stop(f"{news} The turns are used up{self._kept()}.")
        if evaluation.verdict is not Verdict.CORRECT and (self._best is None or self._pending is None):
            return self._repair(evaluation, news)
        return self._climb(news)

    def _first(self) -> Action:
        start = STARTS[self._brief.episode % len(STARTS)]
        try:
            draft = self._workshop.draft(start)
        except (Refused, TraceFailed) as reason:
            return self._stop(
                f"I have no kernel for this task: {reason}. Submitting PyTorch's own operators would gain nothing."
            )
        return self._submit(draft, prose.opening(self._brief, draft, self._rng), None)

    def _take_in(self, evaluation: Evaluation) -> str:
        """Notes the verdict on the last draft; returns what there is to say about it."""
        draft, said = self._submitted[-1], prose.verdict_of(evaluation)
        if evaluation.verdict is not Verdict.CORRECT:
            return said
        view = View(self._brief, draft, evaluation)
        if self._best is None:
            self._best = view
            return said
        before, number = self._best.evaluation, self._number(self._best.draft)
        if _speed(evaluation) > _speed(before) * GAIN:
            self._best = view
            word = _clearly("It helped", "The better figure, though the intervals overlap", before, evaluation)
            return f"{said} {word}."
        word = _clearly(f"Slower than version {number}", f"No clear gain over version {number}", evaluation, before)
        return f"{said} {word}; back to that one."

    def _climb(self, news: str) -> Action:
        best = self._best
        if best is None:
            return self._stop(f"{news} I have no version that works.")
        profile = best.evaluation.profile
        if profile is not None and profile.roofline_share >= NEAR_ROOFLINE:
            return self._stop(
                f"{news} {100 * profile.roofline_share:.0f} % of the roofline is near enough{self._kept()}."
            )
        for move in candidates(best, self._moves, self._weights):
            draft = self._fresh(move.change(best.choices))
            if draft is not None and not pointless(move, best, draft):
                self._pending = move
                return self._submit(draft, f"{news} {move.reason(best, draft)}", best.evaluation.candidate_id)
        return self._stop(f"{news} Nothing that I know is left to try{self._kept()}.")

    def _repair(self, evaluation: Evaluation, news: str) -> Action:
        """Steps away from what failed: towards more accuracy where it was wrong, towards plainness otherwise."""
        last = self._submitted[-1].choices
        self._pending = None
        steps = _safer_sums(last) if evaluation.verdict is Verdict.WRONG else [PLAIN]
        for choices, why in [
            *[(step, _why(last, step)) for step in steps],
            (PLAIN, "Back to one plain loop per operator."),
        ]:
            draft = self._fresh(choices)
            if draft is not None:
                return self._submit(draft, f"{news} {why}", evaluation.candidate_id)
        return self._stop(f"{news} Even the plainest version fails, and I cannot tell why from this. I stop here.")

    def _fresh(self, choices: Choices) -> Draft | None:
        """The draft of a schedule, unless the same text was submitted before or cannot be written."""
        try:
            draft = self._workshop.draft(choices)
        except Refused:
            return None
        return None if draft.text in self._tried else draft

    def _submit(self, draft: Draft, content: str, parent: str | None) -> Action:
        self._tried.add(draft.text)
        self._submitted.append(draft)
        return Action(content, draft.files, None, parent, self._language)

    def _stop(self, content: str) -> Action:
        return Action(content, None, None, None, self._language)

    def _number(self, draft: Draft) -> int:
        return self._submitted.index(draft) + 1

    def _kept(self) -> str:
        if self._best is None:
            return ""
        return f"; version {self._number(self._best.draft)} of {len(self._submitted)} stands"


def _speed(evaluation: Evaluation) -> float:
    """Speed-up against eager: both sides of it were timed together. 0 where nothing was timed."""
    return 0.0 if evaluation.profile is None else evaluation.profile.speedup_eager.value


def _clearly(sure: str, unsure: str, slower: Evaluation, faster: Evaluation) -> str:
    """`sure` if the two speed-ups' intervals are apart, else `unsure`."""
    if slower.profile is None or faster.profile is None:
        return unsure
    return sure if faster.profile.speedup_eager.low > slower.profile.speedup_eager.high else unsure


def _safer_sums(choices: Choices) -> list[Choices]:
    careful = choices._replace(sums=Sums.DOUBLE)
    return [careful, careful._replace(transcendentals=Transcendentals.LIBM), careful._replace(fusion=Fusion.NONE)]


def _why(before: Choices, after: Choices) -> str:
    if before.sums is not after.sums and before.fusion is after.fusion:
        return "If it is rounding, it is in the sums: accumulate every term in double."
    if before.transcendentals is not after.transcendentals:
        return "Take the elementary functions from the C library, to see whether the polynomials are at fault."
    return "Take the loops apart again, one per operator, to rule the fusion out."
