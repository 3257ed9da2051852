"""Hypothesis strategies for every record type: any state that is allowed, odd text, extreme numbers."""

from __future__ import annotations

from hypothesis import strategies as st

from schemas.baseline import Audit, Baseline, FamilyBudget, OutputTolerance, Tolerance
from schemas.candidate import ENTRY, Candidate, Language, SourceFile
from schemas.evaluation import (
    Build,
    DeviceState,
    Evaluation,
    FamilyErrors,
    Fault,
    KernelUsage,
    Profile,
    Verdict,
    Verification,
)
from schemas.hardware import Hardware
from schemas.label import LabelledTrajectory, RewardSpec, Step
from schemas.operator import Argument, Family, Form, Operator, RefusedOperator
from schemas.record import Identified, Record
from schemas.task import RejectedTask, Task
from schemas.tensor import Domain, Dtype, TensorSpec
from schemas.timing import Ratio, Timing
from schemas.trajectory import ToolCall, Trajectory, Turn

text = st.text(st.characters(codec="utf-8"), max_size=12)
counts = st.integers(0, 2**62)
sizes = st.integers(1, 2**40)
positive = st.floats(min_value=0, max_value=1.7e308, exclude_min=True)
finite = st.floats(allow_nan=False, allow_infinity=False)
indices = st.lists(counts, max_size=3).map(tuple)


def some(elements: st.SearchStrategy, least: int = 0, most: int = 3) -> st.SearchStrategy[tuple]:
    """Tuples, as records hold them."""
    return st.lists(elements, min_size=least, max_size=most).map(tuple)


def records(record_type: type[Record], /, **fields: st.SearchStrategy) -> st.SearchStrategy:
    """Records from strategies for their fields; an identified one gets its id."""
    make = record_type.create if issubclass(record_type, Identified) else record_type
    return st.fixed_dictionaries(fields).map(lambda values: make(**values))


@st.composite
def specs(draw: st.DrawFn) -> TensorSpec:
    """Any tensor whose domain fits its dtype."""
    domain = draw(st.sampled_from(Domain))
    fitting = {Domain.INDEX: [Dtype.INT64, Dtype.INT32], Domain.BOOLEAN: [Dtype.BOOL]}
    dtype = draw(st.sampled_from(fitting.get(domain, [dtype for dtype in Dtype if dtype.is_floating])))
    bound = draw(sizes) if domain is Domain.INDEX else None
    return TensorSpec(shape=draw(some(sizes, most=5)), dtype=dtype, domain=domain, bound=bound)


@st.composite
def ratios(draw: st.DrawFn) -> Ratio:
    """A ratio inside its interval."""
    low, value, high = sorted(draw(st.tuples(positive, positive, positive)))
    return Ratio(value=value, low=low, high=high)


timings = records(Timing, seconds=positive, samples=some(finite, least=1))

hardware = records(
    Hardware, kind=st.sampled_from(["cpu", "cuda"]), name=text, architecture=text, units=sizes, cores=sizes,
    cache_bytes=sizes, memory_bytes=sizes, torch_version=text, compiler=text, driver_version=st.none() | text,
    read_bytes_per_second=positive, copy_bytes_per_second=positive, flops_per_second=positive, launch_seconds=positive,
    tensor_flops_per_second=st.none() | positive,
)  # fmt: skip

arguments = records(
    Argument, dims=some(text), dtype=st.sampled_from(Dtype), domain=st.sampled_from(Domain), bound_dim=st.none() | text
)


@st.composite
def operators(draw: st.DrawFn) -> Operator:
    """An operator with as many inputs as arguments."""
    number, form = draw(st.integers(1, 3)), draw(st.sampled_from(Form))
    return draw(
        records(
            Operator, name=text, library=text, library_version=text, licence=text, family=st.sampled_from(Family),
            form=st.just(form), constructor=text if form is Form.MODULE else st.none(), call=text,
            arguments=some(arguments, number, number), source=text, inputs=some(specs(), number, number),
            aten_ops=some(text), graph_hash=text, aliases=some(text),
        )
    )  # fmt: skip


refused_operators = records(RefusedOperator, name=text, library=text, reason=text, detail=text)


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    """A task with as many ids and families as operators."""
    number, compared = draw(st.integers(1, 5)), draw(st.booleans())
    return draw(
        records(
            Task, name=text, source=text, level=sizes, operators=some(text, number, number),
            operator_ids=some(text, number, number), families=some(st.sampled_from(Family), number, number),
            inputs=some(specs(), least=1), outputs=some(specs(), least=1), parameter_bytes=counts, flops=counts,
            bytes=sizes, estimated_seconds=positive, aten_ops=some(text), graph_hash=text, structure_hash=text,
            split_group=text, nearest_benchmark=text if compared else st.none(),
            nearest_score=st.floats(0, 1) if compared else st.none(),
        )
    )  # fmt: skip


rejected_tasks = records(RejectedTask, task=tasks(), reason=text, detail=text)

above_one = st.floats(min_value=1, max_value=1e300, exclude_min=True)
tolerances = records(
    Tolerance,
    outputs=some(
        records(
            OutputTolerance,
            families=some(records(FamilyBudget, family=text, norm=positive, element=positive, row=positive)),
        )
    ),
    factor=above_one, floor_ulps=positive, draws=sizes,
)  # fmt: skip
baselines = records(
    Baseline, task_id=text, hardware=hardware, eager=timings, compiled=st.none() | timings,
    compile_speedup=st.none() | ratios(), roofline_seconds=positive, noise=ratios(), tolerance=tolerances,
    audit=records(Audit, nearest=text, margin=above_one),
)  # fmt: skip

names = st.sets(st.from_regex(r"kernels/[a-z]{1,8}\.cu", fullmatch=True), max_size=3).map(lambda set_: set_ | {ENTRY})
files = names.flatmap(
    lambda paths: st.tuples(*(records(SourceFile, path=st.just(path), text=text) for path in sorted(paths)))
)
candidates = records(
    Candidate, task_id=text, language=st.sampled_from(Language), files=files, policy=text,
    parent_candidate_id=st.none() | text,
)  # fmt: skip

errors = records(
    FamilyErrors, output=counts, family=text, calls=sizes, norm=st.none() | finite, element=st.none() | finite,
    row=st.none() | finite, share_of_budget=st.none() | finite, bad_elements=counts, elements=sizes,
    worst_index=indices, worst_got=text, worst_expected=text,
)  # fmt: skip


@st.composite
def verifications(draw: st.DrawFn, *, passed: bool) -> Verification:
    """A verification with or without affirmative evidence."""
    calls, elements = draw(sizes), draw(sizes)
    return draw(
        records(
            Verification, calls_planned=st.just(calls), calls_good=st.just(calls if passed else calls - 1),
            elements_checked=st.just(elements), elements_good=st.just(elements), errors=some(errors),
            precision=st.sampled_from(["fp64", "fp32", "tf32", "half", "exact", "none"]),
            parameters=st.sampled_from(["state_dict", "seeded", "none"]), message=text,
        )
    )  # fmt: skip


kernels = records(
    KernelUsage, name=text, registers=sizes, shared_bytes=counts, stack_bytes=counts, spill_store_bytes=counts,
    spill_load_bytes=counts,
)  # fmt: skip

states = records(
    DeviceState, sm_clock_mhz=st.none() | sizes, memory_clock_mhz=st.none() | sizes, temperature_c=st.none() | sizes,
    power_w=st.none() | positive, energy_j=st.none() | positive, throttled=some(text),
)  # fmt: skip

profiles = records(
    Profile, candidate=timings, eager=timings, compiled=st.none() | timings, speedup_eager=ratios(),
    speedup_compiled=st.none() | ratios(), roofline_share=positive, rounds=sizes, calls=sizes,
    cache=st.sampled_from(["cold", "warm"]), launch_bound=st.booleans(), before=st.none() | states,
    after=st.none() | states,
)  # fmt: skip


@st.composite
def evaluations(draw: st.DrawFn) -> Evaluation:
    """Any verdict with what it may carry."""
    verdict = draw(st.sampled_from(Verdict))
    built, passed = verdict is not Verdict.BUILD_FAILED, verdict in (Verdict.CORRECT, Verdict.SUSPECT)
    return draw(
        records(
            Evaluation, candidate_id=text, task_id=text, hardware_id=text, judge_version=text, verdict=st.just(verdict),
            rule=text if verdict is Verdict.SUSPECT else st.none(), message=text,
            build=records(
                Build, ok=st.just(built), language=st.sampled_from(Language),
                route=st.sampled_from(["slim", "full", "none"]), fallback_reason=st.none() | text, artefacts=counts,
                kernels=some(kernels),
                seconds=st.floats(0, 1e9), diagnostics=text,
            ),
            verification=verifications(passed=passed) if built else st.none(),
            profile=st.none() | profiles if passed else st.none(), flags=some(text), confinement=text,
        )
    )  # fmt: skip


faults = records(
    Fault, stage=text, item_id=text, step=text, kind=st.sampled_from(["fault_infrastructure", "fault_noise"]),
    message=text, attempts=sizes,
)  # fmt: skip


def _turn(role: str, content: str, **fields: object) -> Turn:
    blank = dict.fromkeys(("reasoning", "tool_call_id", "candidate_id", "evaluation_id"))
    return Turn(role=role, content=content, **{**blank, "tool_calls": (), **fields})


@st.composite
def trajectories(draw: st.DrawFn) -> Trajectory:
    """An episode of a few submissions, the last of them perhaps unanswered."""
    turns = [_turn("system", draw(text)), _turn("user", draw(text))]
    for number in range(draw(st.integers(0, 3))):
        call = ToolCall(id=f"call_{number}", name=draw(text), arguments_json=draw(text))
        candidate, judged = draw(text), draw(st.none() | text)
        fields = {"tool_calls": (call,), "candidate_id": candidate, "evaluation_id": judged}
        turns.append(_turn("assistant", draw(text), reasoning=draw(st.none() | text), **fields))
        if judged is not None:
            turns.append(_turn("tool", draw(text), tool_call_id=call.id))
    stop = draw(st.sampled_from(["stopped", "turn_limit", "budget", "fault", "policy_error"]))
    return draw(
        records(
            Trajectory, task_id=text, hardware_id=text, policy=text, policy_version=text, episode=counts,
            turns=st.just(tuple(turns)), tools_json=text, stop_reason=st.just(stop),
            terminated=st.just(stop == "stopped"), truncated=st.just(stop != "stopped"),
        )
    )  # fmt: skip


reward_specs = records(RewardSpec, name=text, parameters_json=text)


@st.composite
def labelled(draw: st.DrawFn) -> LabelledTrajectory:
    """A trajectory with a step for every judged action."""
    trajectory, dropped = draw(trajectories()), draw(st.none() | text)
    steps = [
        draw(
            records(
                Step, turn=st.just(index), evaluation_id=st.just(turn.evaluation_id), verdict=st.sampled_from(Verdict),
                reward=finite, return_to_go=finite, advantage=st.none() | finite, speedup_eager=st.none() | finite,
                speedup_compiled=st.none() | finite,
            )
        )
        for index, turn in enumerate(trajectory.turns)
        if turn.evaluation_id is not None
    ]  # fmt: skip
    return draw(
        records(
            LabelledTrajectory, trajectory_id=st.just(trajectory.trajectory_id), group_id=text, split_group=text,
            reward_spec=reward_specs, trajectory=st.just(trajectory), steps=st.just(tuple(steps)),
            final_reward=st.none() | finite, return_total=finite, best_evaluation_id=st.none() | text,
            best_speedup=st.none() | positive, keep=st.just(dropped is None), drop_reason=st.just(dropped),
        )
    )  # fmt: skip


TABLES: dict[type[Record], st.SearchStrategy] = {
    Operator: operators(),
    RefusedOperator: refused_operators,
    Task: tasks(),
    RejectedTask: rejected_tasks,
    Hardware: hardware,
    Baseline: baselines,
    Candidate: candidates,
    Evaluation: evaluations(),
    Fault: faults,
    Trajectory: trajectories(),
    RewardSpec: reward_specs,
    LabelledTrajectory: labelled(),
}
"""A strategy for each record type that a table may hold."""
