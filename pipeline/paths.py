"""Where every table stands, relative to the project's root. `dvc.yaml` names the same places (a test compares)."""

from __future__ import annotations

from pathlib import Path

PARAMETERS = Path("params.yaml")
DATA = Path("data")
OPERATORS = DATA / "operators.parquet"
OPERATORS_REFUSED = DATA / "operators_refused.parquet"
TASKS = DATA / "tasks.parquet"
TASKS_ACCEPTED = DATA / "tasks_accepted.parquet"
TASKS_REJECTED = DATA / "tasks_rejected.parquet"
BASELINES = DATA / "baselines.parquet"
FILTER_FAULTS = DATA / "filter_faults.parquet"
TRAJECTORIES = DATA / "trajectories.parquet"
CANDIDATES = DATA / "candidates.parquet"
EVALUATIONS = DATA / "evaluations.parquet"
ROLLOUT_FAULTS = DATA / "rollout_faults.parquet"
LABELLED = DATA / "labelled.parquet"
DATASETS = DATA / "datasets"
REPORT = Path("report")
METRICS = REPORT / "metrics.json"
PAGE = REPORT / "index.html"

OUTPUTS = {
    "mine": (OPERATORS, OPERATORS_REFUSED),
    "synthesize": (TASKS,),
    "filter": (TASKS_ACCEPTED, TASKS_REJECTED, BASELINES, FILTER_FAULTS),
    "rollout": (TRAJECTORIES, CANDIDATES, EVALUATIONS, ROLLOUT_FAULTS),
    "label": (LABELLED,),
    "export": (DATASETS,),
    "report": (METRICS, PAGE),
}
"""What each stage writes, in the order of the graph."""


def writer_of(path: Path) -> str | None:
    """The stage that writes a path; null for a path that is no output."""
    return next((stage for stage, outputs in OUTPUTS.items() if path in outputs), None)
