"""The stage: draws programs, sizes them, and keeps those that are new."""

from __future__ import annotations

import contextlib
import random
import warnings
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import fx

from schemas.hardware import Hardware
from schemas.operator import Operator
from schemas.parameters import SynthesizeParameters
from schemas.record import content_id
from schemas.task import Task
from schemas.tensor import Domain, Dtype, TensorSpec
from stages.graph.identity import graph_hash, structure_hash
from stages.graph.trace import aten_names, outputs, trace_source
from stages.graph.work import work
from stages.synthesize.catalogue import Catalogue
from stages.synthesize.compose import compose
from stages.synthesize.probes import NoFit
from stages.synthesize.program import ONE, Input, Program
from stages.synthesize.sizes import Sized, choose_sizes
from stages.synthesize.source import task_name

COUNTS = {1: 0.10, 2: 0.25, 3: 0.28, 4: 0.22, 5: 0.15}
"""How often a task has so many operators."""
PATIENCE = 30
"""Draws without a new task, for each one wanted, after which the operators are taken to be exhausted."""


class Exhausted(Exception):
    """The operators at hand do not make as many different tasks as were asked for."""


def synthesize(operators: Sequence[Operator], hardware: Hardware, parameters: SynthesizeParameters) -> Iterator[Task]:
    """Yields `parameters.tasks` tasks of distinct structure, the same for the same arguments.

    Raises `ValueError` where no operator can be composed and `Exhausted` where too few different tasks can.
    """
    catalogue = Catalogue(operators)
    tried: set[str] = set()
    seen: set[str] = set()
    for draw in range(PATIENCE * parameters.tasks):
        if len(seen) == parameters.tasks:
            return
        rng = random.Random(f"{parameters.seed} {draw}")  # draws are independent of one another
        with _quiet():
            program = _program(rng, catalogue, parameters)
            if program is None or program.text in tried:
                continue
            task = _sized(rng, program, hardware, parameters)
        if task is not None:
            tried.add(program.text)
        if task is not None and task.structure_hash not in seen:
            seen.add(task.structure_hash)
            yield task
    if len(seen) < parameters.tasks:
        raise Exhausted(
            f"only {len(seen)} of {parameters.tasks} tasks could be composed: ask for fewer tasks, widen `eager_ms` or "
            "`max_tensor_mb`, or mine more operators"
        )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Trial runs leave no trace: neither warnings nor a changed random state."""
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        yield


def _program(rng: random.Random, catalogue: Catalogue, parameters: SynthesizeParameters) -> Program | None:
    """The program of one draw; null where it leads nowhere."""
    low, high = parameters.operators
    counts = {count: COUNTS.get(count, COUNTS[max(COUNTS)]) for count in range(low, high + 1)}
    count = rng.choices(list(counts), list(counts.values()))[0]
    try:
        return compose(rng, catalogue, count).program
    except NoFit:
        return None


def _sized(rng: random.Random, program: Program, hardware: Hardware, parameters: SynthesizeParameters) -> Task | None:
    """The task that a program makes; null where no sizes fit."""
    try:
        return _task(program, choose_sizes(rng, program, hardware, parameters))
    except NoFit:
        return None


def _task(program: Program, sized: Sized) -> Task:
    graph_module = trace_source(sized.source)
    done = work(graph_module)
    if done.compulsory_bytes < 1:
        raise NoFit("nothing must be read or written")
    operators = [step.operator for step in program.steps]
    return Task.create(
        name=task_name(program),
        source=sized.source,
        level=1 if len(operators) == 1 else 2,
        operators=tuple(operator.name for operator in operators),
        operator_ids=tuple(operator.operator_id for operator in operators),
        families=tuple(operator.family for operator in operators),
        inputs=tuple(_input(entry, {**sized.sizes, ONE.label: 1}) for entry in program.inputs),
        outputs=tuple(_output(node) for node in outputs(graph_module)),
        parameter_bytes=done.parameter_bytes,
        flops=done.flops,
        bytes=done.compulsory_bytes,
        estimated_seconds=float(f"{sized.estimated_seconds:.3g}"),
        aten_ops=aten_names(graph_module),
        graph_hash=graph_hash(graph_module),
        structure_hash=structure_hash(graph_module),
        split_group=content_id(" ".join(sorted({operator.name for operator in operators}))),
        nearest_benchmark=None,
        nearest_score=None,
    )


def _input(entry: Input, sizes: Mapping[str, int]) -> TensorSpec:
    shape = tuple(sizes[dim.label] for dim in entry.dims)
    bound = None if entry.bound is None else sizes[entry.bound.label]
    return TensorSpec(shape=shape, dtype=entry.dtype, domain=entry.domain, bound=bound)


def _output(node: fx.Node) -> TensorSpec:
    value = node.meta["val"]
    return TensorSpec(
        shape=tuple(value.shape), dtype=Dtype(str(value.dtype).removeprefix("torch.")), domain=Domain.REAL
    )
