"""One self-contained HTML page about a run.

Candidates and messages are strangers' text: the template escapes everything, the page has no script at all, and its
content policy forbids any, so text that got through could still do nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from schemas.baseline import Baseline
from schemas.evaluation import Evaluation, Verdict
from schemas.hardware import Hardware
from schemas.label import LabelledTrajectory
from schemas.task import Task
from schemas.timing import Ratio
from stages.label.rewards import speed_label
from stages.report.chart import Histogram, histogram
from stages.report.metrics import Metrics
from stages.report.speed import Reached, min_effect_of, reached
from stages.report.viewer import viewer

TEMPLATE = "page.html.jinja"
MAX_LINES = 500
"""Tasks in the table of tasks."""


class TaskLine(NamedTuple):
    """A task in the table of tasks."""

    task: Task
    baseline: Baseline | None
    judged: int
    correct: int
    reached: Reached | None


def page(
    metrics: Metrics,
    labelled: Sequence[LabelledTrajectory],
    evaluations: Sequence[Evaluation],
    tasks: Sequence[Task],
    baselines: Sequence[Baseline],
) -> str:
    """The page as HTML; `metrics` are those of `funnel`, `tasks` at least those of the other records."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"figure": _figure, "interval": _interval, "milliseconds": _milliseconds}
    by_id = {task.task_id: task for task in tasks}
    lines = _lines(labelled, evaluations, by_id, baselines)
    return environment.get_template(TEMPLATE).render(
        metrics=metrics,
        machines=_machines(baselines),
        verdicts=_verdicts(labelled),
        histograms=_histograms(evaluations),
        lines=lines[:MAX_LINES],
        tasks=len(lines),
        viewer=viewer(labelled, by_id),
    )


def _machines(baselines: Sequence[Baseline]) -> list[Hardware]:
    found = {baseline.hardware.hardware_id: baseline.hardware for baseline in baselines}
    return [found[hardware_id] for hardware_id in sorted(found)]


def _verdicts(labelled: Sequence[LabelledTrajectory]) -> dict[str, dict[str, int]]:
    """Submissions of kept episodes by policy and verdict, every verdict in each."""
    kept = [row for row in labelled if row.keep]
    table = {
        policy: dict.fromkeys((str(verdict) for verdict in Verdict), 0)
        for policy in sorted({row.trajectory.policy for row in kept})
    }
    for row in kept:
        for step in row.steps:
            table[row.trajectory.policy][str(step.verdict)] += 1
    return table


def _histograms(evaluations: Sequence[Evaluation]) -> list[Histogram]:
    profiles = [profile for profile in map(speed_label, evaluations) if profile is not None]
    over_eager = [profile.speedup_eager.value for profile in profiles]
    over_compiled = [profile.speedup_compiled.value for profile in profiles if profile.speedup_compiled is not None]
    drawn = [
        histogram(over_eager, "Speed-up over eager"),
        histogram(over_compiled, "Speed-up over torch.compile"),
    ]
    return [chart for chart in drawn if chart is not None]


def _lines(
    labelled: Sequence[LabelledTrajectory],
    evaluations: Sequence[Evaluation],
    tasks: dict[str, Task],
    baselines: Sequence[Baseline],
) -> list[TaskLine]:
    """A line for each task with a baseline or an evaluation, by name."""
    best = reached(evaluations, min_effect_of(labelled))
    judged = Counter(evaluation.task_id for evaluation in evaluations)
    correct = Counter(evaluation.task_id for evaluation in evaluations if evaluation.verdict is Verdict.CORRECT)
    yardsticks = {baseline.task_id: baseline for baseline in baselines}
    lines = [
        TaskLine(tasks[task_id], yardsticks.get(task_id), judged[task_id], correct[task_id], best.get(task_id))
        for task_id in yardsticks.keys() | best.keys()
    ]
    return sorted(lines, key=lambda line: (line.task.name, line.task.task_id))


def _figure(value: float | int | None) -> str:
    """A number as a person reads it; a dash for null."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def _interval(ratio: Ratio | None) -> str:
    return "–" if ratio is None else f"{ratio.value:.2f}x [{ratio.low:.2f}, {ratio.high:.2f}]"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"
