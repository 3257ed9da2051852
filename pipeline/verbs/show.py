"""`quarry show`: one trajectory, or one evaluation, as a person reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

import typer

from pipeline import paths
from pipeline.errors import UserError
from pipeline.tables import read_table
from schemas.evaluation import Evaluation
from schemas.label import LabelledTrajectory, Step
from schemas.record import Identified
from schemas.trajectory import Trajectory, Turn

R = TypeVar("R", bound=Identified)
RULE = "─" * 100


def run(prefix: str) -> None:
    """Print the trajectory whose id starts with `prefix`. Raises `UserError` for none or several."""
    trajectory = _find(read_table(paths.TRAJECTORIES, Trajectory), prefix, "trajectory", "`quarry show` without an id")
    steps: dict[int, Step] = {}
    if paths.LABELLED.exists():
        for row in read_table(paths.LABELLED, LabelledTrajectory):
            if row.trajectory_id == trajectory.trajectory_id:
                steps = {step.turn: step for step in row.steps}
    for line in _trajectory(trajectory, steps):
        _print(line)


def run_evaluation(prefix: str) -> None:
    """Print the evaluation whose id starts with `prefix`: all that led to its verdict."""
    evaluation = _find(read_table(paths.EVALUATIONS, Evaluation), prefix, "evaluation", "`quarry show TRAJECTORY`")
    _print(json.dumps(evaluation.model_dump(mode="json"), indent=2, ensure_ascii=False))


def _print(text: str) -> None:
    """Print what candidates may have written: control characters are shown, so that none reaches the terminal."""
    typer.echo(re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", lambda found: f"\\x{ord(found[0]):02x}", text))


def _find(records: Sequence[R], prefix: str, what: str, where: str) -> R:
    found = [record for record in records if _id(record).startswith(prefix)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UserError(f"no {what} has an id that starts with {prefix!r}: {where} lists them")
    raise UserError(f"{len(found)} {what} ids start with {prefix!r}, {_id(found[0])} among them: give more of the id")


def _id(record: Identified) -> str:
    """The first field of a record, which is its id."""
    return str(next(iter(record))[1])


def list_trajectories() -> None:
    """Print a line a trajectory."""
    for row in read_table(paths.LABELLED, LabelledTrajectory):
        best = "" if row.best_speedup is None else f" best {row.best_speedup:.2f}x"
        reward = "-" if row.final_reward is None else f"{row.final_reward:+g}"
        policy = f"{row.trajectory.policy} {row.trajectory.episode}"
        typer.echo(f"{row.trajectory_id}  {policy:12} {len(row.steps)} turns, reward {reward}{best}")


def _trajectory(trajectory: Trajectory, steps: dict[int, Step]) -> Iterator[str]:
    yield f"trajectory {trajectory.trajectory_id}  task {trajectory.task_id}  policy {trajectory.policy}"
    for index, turn in enumerate(trajectory.turns):
        yield f"{RULE}\n[{index}] {turn.role}"
        if turn.reasoning:
            yield f"(reasoning) {turn.reasoning}"
        yield turn.content
        yield from _calls(turn)
        if index in steps:
            yield _label(steps[index])
    yield f"{RULE}\nended: {trajectory.stop_reason}"


def _calls(turn: Turn) -> Iterator[str]:
    for call in turn.tool_calls:
        yield f"-> {call.name}"
        for path, text in json.loads(call.arguments_json).get("files", {}).items():
            yield f"   {path}"
            yield from (f"   | {line}" for line in text.splitlines())


def _label(step: Step) -> str:
    speed = "" if step.speedup_eager is None else f", {step.speedup_eager:.2f}x eager"
    compiled = "" if step.speedup_compiled is None else f", {step.speedup_compiled:.2f}x compiled"
    advantage = "" if step.advantage is None else f", advantage {step.advantage:+.2f}"
    return (
        f"== {step.verdict}{speed}{compiled}; reward {step.reward:+g}, return-to-go {step.return_to_go:+g}{advantage} "
        f"(evaluation {step.evaluation_id})"
    )
