"""Is it right? Runs a candidate on secret contents of every family and looks at every output twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch

from sandbox.channel import Parameters
from sandbox.judge.bench import Bench, Content
from sandbox.judge.runner_host import RunnerHost
from sandbox.judge.truth import NOWHERE, Errors, Place
from schemas.baseline import FamilyBudget, Tolerance
from schemas.evaluation import FamilyErrors, Verification

Precision = Literal["fp64", "fp32", "tf32", "half", "exact", "none"]
PRECISION_CLASSES: tuple[tuple[float, Precision], ...] = ((1e-10, "fp64"), (2e-5, "fp32"), (3e-3, "tf32"))
"""Upper bounds of the relative norm: float64 keeps 1e-16 and loses some in long sums, float32 1e-7, TF32 5e-4."""
MAX_BLOCK = 4


class Suspicion(Exception):
    """A rule fired: the candidate did what no honest kernel does."""

    def __init__(self, rule: str, evidence: str) -> None:
        super().__init__(f"{evidence} (rule {rule})")
        self.rule = rule


class Finding(NamedTuple):
    """The worst of one output under one family so far."""

    calls: int
    errors: Errors
    share: float
    """Largest error over its budget."""
    place: Place | None
    bad: int
    elements: int
    shape: tuple[int, ...]


class Comparison(NamedTuple):
    """One output of one call against its truth."""

    errors: Errors
    share: float
    """Largest error over its budget: above 1 is wrong."""
    budget: FamilyBudget


class Checker:
    """Holds outputs against truths and budgets, and keeps count of what was good."""

    def __init__(self, tolerance: Tolerance) -> None:
        self._factor = tolerance.factor
        self._budgets = [{budget.family: budget for budget in output.families} for output in tolerance.outputs]
        self._findings: dict[tuple[int, str], Finding] = {}
        self.calls = self.calls_good = self.elements = self.elements_good = 0

    @property
    def families(self) -> list[str]:
        """Families that the task has a budget for."""
        return list(self._budgets[0])

    def check(self, content: Content, outputs: Sequence[torch.Tensor]) -> bool:
        """Whether one call's outputs are all within budget.

        What fails against eager's output is held against float64: some draws are harder than those that the budgets
        were calibrated on, for eager too.
        """
        found = self._compare(content, outputs)
        if content.exactly is not None and any(result.share > 1 for result in found):
            content = content.exactly()
            found = self._compare(content, outputs)
        for index, (result, output) in enumerate(zip(found, outputs, strict=True)):
            good = result.share <= 1
            place = None if good else content.truths[index].worst(output, result.budget)
            self._note((index, content.family), result.errors, result.share, place, output)
            self.elements += output.numel()
            self.elements_good += output.numel() if good else output.numel() - max(place.bad if place else 0, 1)
        self.calls += 1
        passed = all(result.share <= 1 for result in found)
        self.calls_good += passed
        return passed

    def _compare(self, content: Content, outputs: Sequence[torch.Tensor]) -> list[Comparison]:
        found = []
        for index, (truth, output) in enumerate(zip(content.truths, outputs, strict=True)):
            budget = content.yardstick[index].widened(self._budgets[index][content.family], self._factor)
            errors = truth.errors(output)
            found.append(Comparison(errors, errors.share_of(budget) / content.slack, budget))
        return found

    def report(self) -> tuple[FamilyErrors, ...]:
        """The worst errors by output and family."""
        return tuple(
            _family_errors(index, family, finding) for (index, family), finding in sorted(self._findings.items())
        )

    def precision(self) -> Precision:
        """The class of the worst relative norm over the families without cancellation."""
        norms = [f.errors.norm for (_, family), f in self._findings.items() if family in ("normal", "uniform")]
        worst = max(norms, default=NOWHERE.norm)
        if worst == NOWHERE.norm:
            return "none"
        if worst == 0.0:
            return "exact"
        return next((name for bound, name in PRECISION_CLASSES if worst <= bound), "half")

    def _note(
        self, key: tuple[int, str], errors: Errors, share: float, place: Place | None, output: torch.Tensor
    ) -> None:
        old = self._findings.get(key, Finding(0, Errors(0, 0, 0), 0.0, None, 0, 0, ()))
        self._findings[key] = Finding(
            calls=old.calls + 1,
            errors=old.errors.worse(errors),
            share=max(old.share, share),
            place=old.place or place,
            bad=old.bad + (place.bad if place else 0),
            elements=old.elements + output.numel(),
            shape=tuple(output.shape),
        )


def verify(bench: Bench, host: RunnerHost, checker: Checker) -> Verification:
    """Run `bench.parameters.verify_calls` calls in blocks of secret size and check each.

    Raises `RunnerEnded` and `Suspicion`. Stops at the first block with a wrong call, since nothing can mend it.
    """
    plan = schedule_calls(bench, checker.families, host.parameters)
    planned = len(plan)
    while plan and checker.calls_good == checker.calls:
        size = 1 + bench.source.below(min(MAX_BLOCK, bench.slots))
        block, plan = plan[:size], plan[size:]
        result = host.block([c.inputs for c in block], bench.parameters.run_deadline_s, bench.flush)
        for content, outputs in zip(block, result.outputs, strict=True):
            checker.check(content, outputs)
        look_again(block, host)
    return verification(checker, planned, host.parameters)


def look_again(contents: Sequence[Content], host: RunnerHost) -> None:
    """Look at the slots of the last block once more: inputs untouched, outputs settled. Raises `Suspicion`."""
    if not host.inputs_intact([content.inputs for content in contents]):
        raise Suspicion("input_changed", "an input was written to during the call")
    if not host.outputs_settled():
        raise Suspicion("late_write", "an output changed after its call had ended")


def schedule_calls(bench: Bench, families: Sequence[str], mode: Parameters) -> list[Content]:
    """Contents of all families in a secret order, each new to the runner."""
    per_family = -(-bench.parameters.verify_calls // len(families))
    contents = [c for family in families for c in bench.contents(family, per_family, mode=mode)]
    return [contents[i] for i in bench.source.permutation(len(contents))]


def verification(checker: Checker, planned: int, mode: Parameters) -> Verification:
    """The record of what a checker saw. A verification that was cut short has fewer good calls than planned."""
    names: dict[Parameters, Literal["state_dict", "seeded", "none"]] = {
        Parameters.NONE: "none",
        Parameters.STATE_DICT: "state_dict",
        Parameters.SEEDED: "seeded",
    }
    report = checker.report()
    wrong = [entry for entry in report if entry.share_of_budget is None or entry.share_of_budget > 1]
    return Verification(
        calls_planned=planned,
        calls_good=checker.calls_good,
        elements_checked=checker.elements,
        elements_good=checker.elements_good,
        errors=report,
        precision=checker.precision(),
        parameters=names[mode],
        message=_describe(wrong, checker) if wrong else "",
    )


def _family_errors(index: int, family: str, finding: Finding) -> FamilyErrors:
    place = finding.place
    measurable = finding.errors != NOWHERE
    return FamilyErrors(
        output=index,
        family=family,
        calls=finding.calls,
        norm=finding.errors.norm if measurable else None,
        element=finding.errors.element if measurable else None,
        row=finding.errors.row if measurable else None,
        share_of_budget=finding.share if measurable else None,
        bad_elements=finding.bad,
        elements=finding.elements,
        worst_index=place.position if place else (),
        worst_got=repr(place.got) if place else "",
        worst_expected=repr(place.expected) if place else "",
    )


def _describe(wrong: Sequence[FamilyErrors], checker: Checker) -> str:
    first = wrong[0]
    families = sorted({entry.family for entry in wrong})
    share = "no finite error" if first.share_of_budget is None else f"{first.share_of_budget:.3g} times the tolerance"
    return (
        f"wrong on {checker.calls - checker.calls_good} of {checker.calls} calls (inputs: {', '.join(families)}): "
        f"{first.bad_elements} of {first.elements} elements of output {first.output} are off, worst at "
        f"{list(first.worst_index)}: got {first.worst_got}, expected {first.worst_expected} ({share})"
    )
