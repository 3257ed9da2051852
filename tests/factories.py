"""Valid records for tests, with content ids: say what matters to the test, the rest is filled in.

Records refer to each other as a run's records do: `task` -> `baseline`, `candidate` -> `evaluation` -> `trajectory`.
`world` makes a small run of them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from schemas.baseline import Audit, Baseline, FamilyBudget, OutputTolerance, Tolerance
from schemas.candidate import Candidate, Language, SourceFile
from schemas.evaluation import Build, Evaluation, FamilyErrors, Profile, Verdict, Verification
from schemas.hardware import Hardware
from schemas.operator import Argument, Family, Form, Operator
from schemas.task import Task
from schemas.tensor import TensorSpec
from schemas.timing import Ratio, Timing
from schemas.trajectory import StopReason, Trajectory, Turn
from stages.rollout.tools import TOOLS_JSON, submit_call

JUDGE = "judge-of-the-tests"
EAGER_SECONDS = 4e-3
TASK_SOURCE = """\
import torch
import torch.nn as nn

N = {size}


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1.0


def get_inputs():
    return [torch.rand(N, 1024)]


def get_init_inputs():
    return []
"""


def hardware(name: str = "Test CPU @ 2.00GHz") -> Hardware:
    """A small CPU."""
    return Hardware.create(
        kind="cpu",
        name=name,
        architecture="x86_64:avx2+fma",
        units=2,
        cores=2,
        cache_bytes=32 << 20,
        memory_bytes=16 << 30,
        torch_version="2.13.0",
        compiler="g++ 12.2.0",
        driver_version=None,
        read_bytes_per_second=20e9,
        copy_bytes_per_second=16e9,
        flops_per_second=100e9,
        launch_seconds=2e-6,
    )


def operator(name: str = "torch.relu", family: Family = Family.POINTWISE) -> Operator:
    """A pointwise operator in functional form."""
    return Operator.create(
        name=name,
        library="torch",
        library_version="2.13.0",
        licence="BSD-3-Clause",
        family=family,
        form=Form.FUNCTION,
        constructor=None,
        call=f"{name}({{0}})",
        arguments=(Argument(dims=("*",)),),
        source=TASK_SOURCE.format(size=8),
        inputs=(TensorSpec(shape=(8, 1024)),),
        aten_ops=("aten.relu.default",),
        graph_hash=f"graph-{name}",
        aliases=(),
    )


def task(number: int = 0, *, split_group: str | None = None, nearest: tuple[str, float] | None = None) -> Task:
    """Task `number`; different numbers are different tasks, each in a split group of its own unless told."""
    size = 1024 + number
    spec = TensorSpec(shape=(size, 1024))
    return Task.create(
        name=f"relu_add_{number}",
        source=TASK_SOURCE.format(size=size),
        level=2,
        operators=("torch.relu", "torch.add"),
        operator_ids=("operator-relu", "operator-add"),
        families=(Family.POINTWISE, Family.POINTWISE),
        inputs=(spec,),
        outputs=(spec,),
        parameter_bytes=0,
        flops=2 * spec.numel,
        bytes=2 * spec.nbytes,
        estimated_seconds=EAGER_SECONDS,
        aten_ops=("aten.relu.default", "aten.add.Tensor"),
        graph_hash=f"graph-{number}",
        structure_hash=f"structure-{number}",
        split_group=split_group or f"group-{number}",
        nearest_benchmark=nearest[0] if nearest else None,
        nearest_score=nearest[1] if nearest else None,
    )


def ratio(value: float, width: float = 0.02) -> Ratio:
    """A ratio whose interval reaches `width` of it to either side."""
    return Ratio(value=value, low=value * (1 - width), high=value * (1 + width))


def timing(seconds: float) -> Timing:
    """Three samples around a median."""
    return Timing(seconds=seconds, samples=(seconds, seconds * 1.01, seconds * 0.99))


def baseline(of: Task, machine: Hardware | None = None, compile_speedup: float | None = 1.5) -> Baseline:
    """Eager takes 4 ms; compiled is faster by `compile_speedup`, or missing."""
    machine = machine or hardware()
    compiled = None if compile_speedup is None else timing(EAGER_SECONDS / compile_speedup)
    budget = FamilyBudget(family="normal", norm=1e-6, element=1e-5, row=1e-5)
    return Baseline(
        task_id=of.task_id,
        hardware=machine,
        eager=timing(EAGER_SECONDS),
        compiled=compiled,
        compile_speedup=None if compile_speedup is None else ratio(compile_speedup),
        roofline_seconds=machine.roofline_seconds(of.flops, of.bytes),
        noise=Ratio(value=1.001, low=0.99, high=1.012),
        tolerance=Tolerance(
            outputs=tuple(OutputTolerance(families=(budget,)) for _ in of.outputs), factor=3.0, floor_ulps=4.0, draws=2
        ),
        audit=Audit(nearest="zeros", margin=100.0),
    )


def candidate(
    of: Task, text: str = "class ModelNew: ...\n", *, policy: str = "schedule", parent: str | None = None
) -> Candidate:
    """A candidate of one file."""
    return Candidate.create(
        task_id=of.task_id,
        language=Language.CPP,
        files=(SourceFile(path="model_new.py", text=text),),
        policy=policy,
        parent_candidate_id=parent,
    )


def evaluation(
    of: Candidate,
    verdict: Verdict = Verdict.CORRECT,
    *,
    speedup: float | Ratio | None = None,
    compiled: float | Ratio | None = None,
    launch_bound: bool = False,
    machine: Hardware | None = None,
    message: str | None = None,
) -> Evaluation:
    """A verdict; with `speedup` (over eager) a profile as well, and with `compiled` one against `torch.compile`."""
    built = verdict is not Verdict.BUILD_FAILED
    passed = verdict in (Verdict.CORRECT, Verdict.SUSPECT)
    return Evaluation.create(
        candidate_id=of.candidate_id,
        task_id=of.task_id,
        hardware_id=(machine or hardware()).hardware_id,
        judge_version=JUDGE,
        verdict=verdict,
        rule="late_write" if verdict is Verdict.SUSPECT else None,
        message=message if message is not None else f"{verdict} in the tests",
        build=build(ok=built),
        verification=verification(passed=passed) if built else None,
        profile=None if speedup is None else profile(speedup, compiled, launch_bound=launch_bound),
        flags=("launch_bound",) if launch_bound else (),
        confinement="process-group",
    )


def build(*, ok: bool) -> Build:
    """A slim build, or one that the compiler refused."""
    return Build(
        ok=ok,
        language=Language.CPP,
        route="slim",
        fallback_reason=None,
        artefacts=int(ok),
        seconds=1.5,
        diagnostics="" if ok else "kernel.cpp(17): error: 'row' was not declared in this scope",
    )


def verification(*, passed: bool) -> Verification:
    """Twelve calls, all good or half of them."""
    entry = FamilyErrors(
        output=0,
        family="normal",
        calls=12,
        norm=1e-7 if passed else 0.5,
        element=1e-6,
        row=1e-6,
        share_of_budget=0.1 if passed else 5e5,
        bad_elements=0 if passed else 512,
        elements=1024,
        worst_index=(3, 7),
        worst_got="0.0",
        worst_expected="1.0",
    )
    return Verification(
        calls_planned=12,
        calls_good=12 if passed else 6,
        elements_checked=12 * 1024,
        elements_good=12 * 1024 if passed else 12 * 512,
        errors=(entry,),
        precision="fp32",
        parameters="none",
        message="" if passed else "wrong on 6 of 12 calls",
    )


def profile(speedup: float | Ratio, compiled: float | Ratio | None, *, launch_bound: bool = False) -> Profile:
    """Times that fit the ratios, against an eager time of 4 ms."""
    over_eager = speedup if isinstance(speedup, Ratio) else ratio(speedup)
    over_compiled = ratio(compiled) if isinstance(compiled, float | int) else compiled
    seconds = EAGER_SECONDS / over_eager.value
    return Profile(
        candidate=timing(seconds),
        eager=timing(EAGER_SECONDS),
        compiled=None if over_compiled is None else timing(seconds * over_compiled.value),
        speedup_eager=over_eager,
        speedup_compiled=over_compiled,
        roofline_share=0.4,
        rounds=6,
        calls=48,
        cache="cold",
        launch_bound=launch_bound,
        before=None,
        after=None,
    )


def trajectory(
    of: Task,
    actions: Sequence[tuple[Candidate, Evaluation]],
    *,
    policy: str = "schedule",
    episode: int = 0,
    stop_reason: StopReason = "stopped",
    last_words: str = "Nothing worth its effort is left.",
    machine: Hardware | None = None,
    system: str = "You write fast kernels.",
) -> Trajectory:
    """An episode that submits the actions one by one and is told each verdict; a stopped one ends with a word."""
    turns = [
        turn("system", system),
        turn("user", f"Make this module faster.\n\n```python\n{of.source.rstrip()}\n```"),
    ]
    for number, (tried, judged) in enumerate(actions, start=1):
        call = submit_call(number, tried.files)
        turns.append(
            Turn(
                role="assistant",
                content=f"Attempt {number}: one pass over the input.",
                reasoning=None,
                tool_calls=(call,),
                tool_call_id=None,
                candidate_id=tried.candidate_id,
                evaluation_id=judged.evaluation_id,
            )
        )
        turns.append(turn("tool", judged.message, tool_call_id=call.id))
    if stop_reason == "stopped":
        turns.append(turn("assistant", last_words))
    return Trajectory.create(
        task_id=of.task_id,
        hardware_id=(machine or hardware()).hardware_id,
        policy=policy,
        policy_version="policy-of-the-tests",
        episode=episode,
        turns=tuple(turns),
        tools_json=TOOLS_JSON,
        stop_reason=stop_reason,
        terminated=stop_reason == "stopped",
        truncated=stop_reason != "stopped",
    )


def turn(
    role: Literal["system", "user", "assistant", "tool"], content: str, *, tool_call_id: str | None = None
) -> Turn:
    """A turn that submits nothing."""
    return Turn(
        role=role,
        content=content,
        reasoning=None,
        tool_calls=(),
        tool_call_id=tool_call_id,
        candidate_id=None,
        evaluation_id=None,
    )


class World(NamedTuple):
    """The records of a small run."""

    tasks: list[Task]
    baselines: list[Baseline]
    candidates: list[Candidate]
    evaluations: list[Evaluation]
    trajectories: list[Trajectory]


class Outcome(NamedTuple):
    """What one submission of a scripted episode turns out to be."""

    verdict: Verdict
    speedup: float | None = None
    compiled: float | None = None


FAILED_BUILD = Outcome(Verdict.BUILD_FAILED)
WRONG = Outcome(Verdict.WRONG)
CORRECT = Outcome(Verdict.CORRECT, 1.0, 0.7)
FASTER = Outcome(Verdict.CORRECT, 1.4, 0.9)
FASTEST = Outcome(Verdict.CORRECT, 3.0, 2.0)
SUSPECT = Outcome(Verdict.SUSPECT, 90.0, 60.0)

EPISODES: tuple[tuple[str, StopReason, tuple[Outcome, ...]], ...] = (
    ("schedule", "stopped", (CORRECT, FASTER, FASTEST)),
    ("schedule", "turn_limit", (FAILED_BUILD, WRONG, FASTER)),
    ("fault", "stopped", (FAILED_BUILD, FASTEST)),
    ("fault", "turn_limit", (WRONG, SUSPECT)),
)
"""Policy, end and outcomes of the episodes that `world` plays on every task."""


def world(tasks: int = 4, episodes: Sequence[tuple[str, StopReason, tuple[Outcome, ...]]] = EPISODES) -> World:
    """A run of scripted episodes on so many tasks."""
    made = World([task(number) for number in range(tasks)], [], [], [], [])
    for of in made.tasks:
        made.baselines.append(baseline(of))
        for number, (policy, stop_reason, outcomes) in enumerate(episodes):
            actions = []
            for step, outcome in enumerate(outcomes):
                tried = candidate(of, f"# {policy} {number} {step}\nclass ModelNew: ...\n", policy=policy)
                judged = evaluation(tried, outcome.verdict, speedup=outcome.speedup, compiled=outcome.compiled)
                actions.append((tried, judged))
            made.candidates.extend(tried for tried, _ in actions)
            made.evaluations.extend(judged for _, judged in actions)
            made.trajectories.append(trajectory(of, actions, policy=policy, episode=number, stop_reason=stop_reason))
    return made
