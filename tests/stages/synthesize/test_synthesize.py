"""Every task is judged many times over: one that does not run, repeats another or hides dead weight costs hours."""

from __future__ import annotations

import ast
import math
import re

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from schemas.parameters import SynthesizeParameters
from stages.graph.cost import eager_seconds
from stages.graph.needs import needs
from stages.graph.reference import load_task_source
from stages.graph.trace import placeholders, trace_eager, trace_source
from stages.synthesize import synthesize
from stages.synthesize.sizes import SLACK, TOTAL_BYTES
from stages.synthesize.tasks import Exhausted
from tests.stages.synthesize.conftest import COUNT


def at_batch(source: str, batch: int) -> str:
    return re.sub(r"^BATCH = \d+$", f"BATCH = {batch}", source, flags=re.MULTILINE)


def test_as_many_as_asked_for_all_of_distinct_structure(tasks):
    assert len(tasks) == COUNT
    assert len({task.structure_hash for task in tasks}) == COUNT
    assert len({task.task_id for task in tasks}) == COUNT


def test_same_seed_same_tasks_other_seed_others(operators, machine, parameters, tasks):
    """A run that is repeated must meet its ledger."""
    torch.manual_seed(11)
    assert list(synthesize(operators, machine, parameters)) == tasks
    others = synthesize(operators, machine, parameters.model_copy(update={"seed": 4, "tasks": 3}))
    assert not {task.task_id for task in others} & {task.task_id for task in tasks}


def test_more_tasks_keep_the_first_ones(operators, machine, parameters, tasks):
    """Asking for more must not throw away what was judged already."""
    fewer = synthesize(operators, machine, parameters.model_copy(update={"tasks": COUNT - 4}))
    assert list(fewer) == tasks[: COUNT - 4]


def test_every_task_runs_at_any_batch(tasks):
    """The batch is one symbol used everywhere, so a tiny copy of each task can be tried anywhere."""
    for task in tasks:
        for batch in (2, 3):
            reference = load_task_source(at_batch(task.source, batch))
            with torch.no_grad():
                output = reference.build()(*reference.get_inputs())
            assert bool(output.isfinite().all()), task.source


def test_records_say_what_the_source_does(tasks):
    for task in tasks:
        reference = load_task_source(task.source)
        with FakeTensorMode(allow_non_fake_inputs=True):
            model, inputs = reference.build(), reference.get_inputs()
            output = model(*inputs)
        assert [(tuple(value.shape), str(value.dtype)) for value in inputs] == [
            (spec.shape, f"torch.{spec.dtype}") for spec in task.inputs
        ]
        assert tuple(output.shape) == task.outputs[0].shape
        assert reference.get_init_inputs() == []
        assert task.parameter_bytes == sum(p.numel() * p.element_size() for p in model.parameters())
        assert task.level == (1 if len(task.operators) == 1 else 2)


def test_no_input_or_parameter_is_dead(tasks):
    for task in tasks:
        graph_module = trace_source(task.source)
        shares = needs(graph_module)
        assert all(entry.node.users for entry in placeholders(graph_module))
        assert task.bytes <= task.input_bytes + task.output_bytes + task.parameter_bytes
        assert any(shares[entry.node] > 0 for entry in placeholders(graph_module))


def test_sizes_stay_within_the_limits(tasks, parameters):
    low, high = (limit / 1e3 for limit in parameters.eager_ms.cpu)
    for task in tasks:
        assert low * 0.99 <= task.estimated_seconds <= high * SLACK
        assert task.input_bytes + task.output_bytes <= TOTAL_BYTES
        assert max(spec.nbytes for spec in (*task.inputs, *task.outputs)) <= parameters.max_tensor_mb.cpu << 20


def test_estimates_grow_with_the_batch(tasks, machine):
    for task in tasks:
        times = []
        for batch in (32, 256, 2048):
            reference = load_task_source(at_batch(task.source, batch))
            with FakeTensorMode(allow_non_fake_inputs=True):
                model, inputs = reference.build(), reference.get_inputs()
            times.append(eager_seconds(trace_eager(model, inputs), machine))
        assert times == sorted(times), task.name
        assert not math.isclose(times[0], times[-1])


def test_sources_read_like_a_user_wrote_them(tasks):
    """One statement a line, no builtin hidden, every global used."""
    for task in tasks:
        tree = ast.parse(task.source)
        names = {target.id for node in ast.walk(tree) if isinstance(node, ast.Assign) for target in node.targets
                 if isinstance(target, ast.Name)}  # fmt: skip
        assert not names & set(dir(__builtins__))
        assert ";" not in task.source
        for name in (name for name in names if name.isupper()):
            assert len(re.findall(rf"\b{name}\b", task.source)) > 1, task.source


def test_siblings_share_a_split_group(tasks):
    """Two tasks of the same operators must not stand on both sides of a split."""
    groups: dict[frozenset[str], set[str]] = {}
    for task in tasks:
        groups.setdefault(frozenset(task.operators), set()).add(task.split_group)
    assert all(len(group) == 1 for group in groups.values())


def test_number_of_operators_is_respected(operators, machine):
    parameters = SynthesizeParameters(tasks=3, operators=(2, 2))
    assert {len(task.operators) for task in synthesize(operators, machine, parameters)} == {2}


def test_too_few_operators_are_said_to_be_too_few(operators, machine):
    """A user who asks for the impossible must read why, instead of waiting for ever."""
    few = [operator for operator in operators if operator.name == "torch.nn.functional.relu"]
    with pytest.raises(Exhausted, match="mine more operators"):
        list(synthesize(few, machine, SynthesizeParameters(tasks=4, operators=(1, 1))))


def test_no_operators_at_all_are_an_error(machine):
    with pytest.raises(ValueError, match="none of the operators"):
        next(iter(synthesize([], machine, SynthesizeParameters())))
