"""Plants realistic bugs in a working kernel and repairs them from the feedback: failures and recoveries for a critic.

The first submission carries one or two bugs; what is said with it is what is said of a kernel that is believed to be
right. After that the policy argues from the verdict: it quotes what failed, names the line that it found, and mends it.
Some first repairs go astray. Where turns are left, a repaired kernel is improved once.
"""

from __future__ import annotations

import random

from schemas.candidate import ENTRY, Language, SourceFile
from schemas.evaluation import Evaluation, Verdict
from stages.rollout.policies import prose
from stages.rollout.policies.base import Action, Brief, Episode, Observation
from stages.rollout.policies.codegen.choices import Choices, Fusion, Reuse, Sums, Transcendentals
from stages.rollout.policies.codegen.generate import Refused, TraceFailed
from stages.rollout.policies.moves import MOVES, View, candidates
from stages.rollout.policies.mutations import CATALOGUE, Edit, Kind, Mutation
from stages.rollout.policies.version import policies_version
from stages.rollout.policies.workshop import Draft, Workshop, dice

SHARES = {Kind.BUILD: 0.45, Kind.WRONG: 0.45, Kind.CRASH: 0.1}
"""How often the first submission fails in which way."""

TWO_BUGS = 0.3
"""How often there is a second bug, which the first may hide."""

STRAY_REPAIR = 0.35
"""How often a first repair looks in the wrong place, where the verdict leaves room for guessing."""

BASES = (
    Choices(),
    Choices(reuse=Reuse.RECOMPUTE),
    Choices(fusion=Fusion.CHAINS),
    Choices(transcendentals=Transcendentals.LIBM, chains=1),
)
"""Schedules that bugs are planted into."""


class FaultPolicy:
    """Opens episodes of failing and repairing."""

    name = "fault"

    def version(self) -> str:
        """A hash of the code."""
        return policies_version()

    def begin(self, brief: Brief) -> Episode:
        """An episode on the task."""
        return FaultEpisode(brief)


class FaultEpisode:
    """One kernel, its bugs, and the way back."""

    def __init__(self, brief: Brief) -> None:
        self._brief = brief
        self._rng = dice(brief, "fault")
        self._workshop = Workshop(brief)
        self._kind = brief.baseline.hardware.kind
        self._language = Language.CUDA if self._kind == "cuda" else Language.CPP
        self._choices = self._rng.choice(BASES)
        self._bugs: list[Mutation] = []
        self._stray = self._rng.random() < STRAY_REPAIR
        self._submissions = 0
        self._improved = False

    @property
    def planted(self) -> tuple[Mutation, ...]:
        """The bugs in the latest submission."""
        return tuple(self._bugs)

    def act(self, observation: Observation | None) -> Action:
        """The next submission, or the end."""
        if observation is None:
            return self._first()
        evaluation = observation.evaluation
        said = prose.verdict_of(evaluation)
        if self._submissions >= self._brief.turns:
            return self._stop(f"{said} The turns are used up.")
        if evaluation.verdict is Verdict.CORRECT:
            return self._after_success(evaluation, said)
        return self._repair(evaluation, said)

    def _first(self) -> Action:
        try:
            draft = self._workshop.draft(self._choices)
        except (Refused, TraceFailed) as reason:
            return self._stop(f"I have no kernel for this task: {reason}. I submit nothing.")
        self._bugs = self._planted(draft.text)
        return self._submit(self._text(), prose.opening(self._brief, draft, self._rng), None)

    def _planted(self, text: str) -> list[Mutation]:
        """One or two bugs that fit the text, of a kind drawn at random."""
        kinds = list(SHARES)
        kind = self._rng.choices(kinds, weights=[SHARES[one] for one in kinds])[0]
        wanted = 2 if kind is not Kind.CRASH and self._rng.random() < TWO_BUGS else 1
        order = [mutation for mutation in CATALOGUE if mutation.kind is kind]
        self._rng.shuffle(order)
        rest = [mutation for mutation in CATALOGUE if mutation.kind is Kind.WRONG and mutation not in order]
        self._rng.shuffle(rest)
        bugs: list[Mutation] = []
        for mutation in [*order, *rest]:
            changed = self._apply(text, mutation)
            if len(bugs) < wanted and changed is not None:
                bugs.append(mutation)
                text = changed.text
        return bugs

    def _apply(self, text: str, mutation: Mutation) -> Edit | None:
        """The same place every time: a bug that outlives a repair stays where it was."""
        rng = random.Random(f"{self._brief.seed}/{self._brief.task.task_id}/{self._brief.episode}/{mutation.name}")
        edit = mutation.edit(text, rng)
        return edit if edit is not None and edit.text != text else None

    def _text(self) -> str:
        """The candidate with the bugs that are still in it."""
        text = self._workshop.draft(self._choices).text
        for bug in self._bugs:
            edit = self._apply(text, bug)
            text = text if edit is None else edit.text
        return text

    def _repair(self, evaluation: Evaluation, said: str) -> Action:
        if not self._bugs:
            return self._stop(f"{said} I see no mistake in the source that explains it, so I stop.")
        if self._stray and self._brief.turns - self._submissions >= 2:
            self._stray = False
            stray = self._astray(evaluation, said)
            if stray is not None:
                return stray
        bug = self._to_blame(evaluation)
        place = self._place(bug)
        self._bugs.remove(bug)
        return self._submit(self._text(), f"{said} {self._diagnosis(bug, place)}", evaluation.candidate_id)

    def _to_blame(self, evaluation: Evaluation) -> Mutation:
        """The bug that the verdict points at: what does not build hides everything else."""
        failed = evaluation.verdict is Verdict.BUILD_FAILED
        return next((bug for bug in self._bugs if (bug.kind is Kind.BUILD) == failed), self._bugs[0])

    def _place(self, bug: Mutation) -> Edit | None:
        text = self._workshop.draft(self._choices).text
        for one in self._bugs:
            edit = self._apply(text, one)
            if one is bug:
                return edit
            text = text if edit is None else edit.text
        return None

    def _diagnosis(self, bug: Mutation, place: Edit | None) -> str:
        if place is None:
            return f"Reading the source again: {bug.found}."
        shown = place.after or place.before
        verb = self._rng.choice(["Reading the source again", "Going through it line by line", "Looking there"])
        found = f"{verb}, line {place.line} of {ENTRY}: {bug.found}"
        if not place.after:
            return f"{found} (`{_short(shown)}` belongs there)."
        return f"{found}: `{_short(place.after)}` should be `{_short(place.before)}`."

    def _astray(self, evaluation: Evaluation, said: str) -> Action | None:
        """A plausible repair of something that was not broken; None where there is none to make."""
        before, old = self._text(), self._choices
        for choices, why in self._suspicions(evaluation):
            self._choices = choices
            if self._text() != before and self._all_bugs_fit():
                return self._submit(self._text(), f"{said} {why}", evaluation.candidate_id)
        self._choices = old
        return None

    def _all_bugs_fit(self) -> bool:
        """Whether every bug is still in the text: a stray repair must not remove one by accident."""
        text = self._workshop.draft(self._choices).text
        for bug in self._bugs:
            edit = self._apply(text, bug)
            if edit is None:
                return False
            text = edit.text
        return True

    def _suspicions(self, evaluation: Evaluation) -> list[tuple[Choices, str]]:
        """What one might try before reading closely. A compiler names the line, so there is nothing to guess."""
        now = self._choices
        if evaluation.verdict is Verdict.BUILD_FAILED:
            return []
        scratch = (
            now._replace(reuse=Reuse.RECOMPUTE),
            "The scratch rows are what I trust least: compute without them.",
        )
        chains = (now._replace(chains=1), "The unrolled sums are the fiddly part: go back to one accumulator each.")
        rounding = (now._replace(sums=Sums.DOUBLE), "It could be rounding in the sums: accumulate in double.")
        helpers = (
            now._replace(transcendentals=Transcendentals.LIBM),
            "My own exp and its kin may be off: take the C library's, to see.",
        )
        order = [scratch, chains, helpers]
        self._rng.shuffle(order)
        return [rounding, *order] if _slightly_off(evaluation) else order

    def _after_success(self, evaluation: Evaluation, said: str) -> Action:
        if self._bugs:
            bug = self._bugs[0]
            said = f"{said} It passes, but it should not. {self._diagnosis(bug, self._place(bug))}"
            self._bugs.remove(bug)
            return self._submit(self._text(), said, evaluation.candidate_id)
        if self._improved:
            return self._stop(f"{said} That will do.")
        self._improved = True
        view = View(self._brief, self._workshop.draft(self._choices), evaluation)
        for move in candidates(view, MOVES[self._kind], {}):
            draft = self._next_draft(move.change(view.choices))
            if draft is not None and draft.text != view.draft.text:
                self._choices = draft.choices
                return self._submit(draft.text, f"{said} {move.reason(view, draft)}", evaluation.candidate_id)
        return self._stop(f"{said} Nothing that I know is left to try.")

    def _next_draft(self, choices: Choices) -> Draft | None:
        try:
            return self._workshop.draft(choices)
        except Refused:
            return None

    def _submit(self, text: str, content: str, parent: str | None) -> Action:
        self._submissions += 1
        return Action(content, (SourceFile(path=ENTRY, text=text),), None, parent, self._language)

    def _stop(self, content: str) -> Action:
        return Action(content, None, None, None, self._language)


def _slightly_off(evaluation: Evaluation) -> bool:
    """Whether the errors are small enough to be rounding, so far as the verdict tells."""
    errors = evaluation.verification.errors if evaluation.verification else ()
    return bool(errors) and all(e.share_of_budget is not None and e.share_of_budget < 100 for e in errors)


def _short(line: str) -> str:
    return line if len(line) <= 100 else f"{line[:97]}..."
