"""Choosing sizes: dimensions as models have them, and the batch that makes eager mode take the wanted time."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from schemas.hardware import Hardware
from schemas.parameters import SynthesizeParameters
from stages.graph.cost import eager_seconds
from stages.graph.reference import load_task_source
from stages.graph.trace import operations, outputs, placeholders, trace_eager
from stages.graph.work import nbytes
from stages.synthesize.probes import NoFit
from stages.synthesize.program import BATCH, Program
from stages.synthesize.shapes import label_sizes
from stages.synthesize.source import task_source, written_labels

CHOICES = (
    ("CHANNELS", (16, 24, 32, 48, 64, 96, 128, 192, 256)),
    ("HEIGHT", (14, 16, 20, 28, 32, 40, 48, 56, 64)),
    ("WIDTH", (14, 16, 20, 28, 32, 40, 48, 56, 64)),
    ("LENGTH", (16, 32, 50, 64, 100, 128, 197, 256, 384, 512)),
    ("EMBEDDINGS", (1000, 2000, 5000, 10000)),
    ("FEATURES", (64, 96, 128, 192, 256, 384, 500, 512, 640, 768, 1000, 1024, 1536, 2048)),
    ("SHAPE", (64, 128, 192, 256, 384, 512, 768, 1024)),
    ("SIZE", (4, 7, 8, 12, 16)),
    ("", (16, 24, 32, 48, 64, 100, 128, 256)),
)
"""Sizes by what a name contains; the first that matches counts. Not all are powers of two: edges must be handled."""
SQUARE = 0.7
"""How often height and width are equal."""
ROW_LIMIT = 1 << 19
"""Most elements of one sample in an input: the batch should have room to move."""
TOTAL_BYTES = 128 << 20
"""Inputs and outputs together: judging copies them many times."""
LIVE_BYTES = 1 << 30
"""All values of one eager call together."""
TRIALS = 4
SLACK = 1.5
"""How far above the wanted time an estimate may lie."""
PILOT = 64
"""The batch from which time and memory at others are read off."""


class Sized(NamedTuple):
    """A program at its final sizes."""

    source: str
    sizes: Mapping[str, int]
    """Of all labels that the source writes out."""
    estimated_seconds: float
    """What one eager call should take."""


class _Measure(NamedTuple):
    """What one trace at one batch tells."""

    seconds: float
    largest: int
    """Bytes of the largest tensor."""
    outside: int
    """Bytes of inputs and outputs."""
    live: int
    """Bytes of all values."""


def choose_sizes(rng: random.Random, program: Program, hardware: Hardware, parameters: SynthesizeParameters) -> Sized:
    """Sizes for which eager mode should take a time drawn log-uniformly from the window.

    Raises `NoFit` where no sizes tried let the program run within the window and the limits of memory.
    """
    low, high = (limit / 1e3 for limit in parameters.eager_ms.on(hardware.kind))
    target = math.exp(rng.uniform(math.log(low), math.log(high)))
    for _ in range(TRIALS):
        sizes = _draw(rng, program)
        try:
            sized = _solve(program, sizes, target, hardware, parameters.max_tensor_mb.on(hardware.kind) << 20)
        except NoFit:
            continue
        if low <= sized.estimated_seconds <= high * SLACK:
            return sized
    raise NoFit("no sizes fit the window")


def _draw(rng: random.Random, program: Program) -> dict[str, int]:
    """Sizes for all symbols but the batch, one sample of every input within `ROW_LIMIT`."""
    while True:
        sizes: dict[str, int] = {}
        for symbol in program.symbols:
            if symbol != BATCH:
                sizes[symbol] = rng.choice(next(choices for part, choices in CHOICES if part in symbol))
        if {"HEIGHT", "WIDTH"} <= sizes.keys() and rng.random() < SQUARE:
            sizes["WIDTH"] = sizes["HEIGHT"]
        rows = [math.prod(sizes.get(dim.label, 1) for dim in entry.dims) for entry in program.inputs]
        if max(rows) <= ROW_LIMIT:
            return sizes


def _solve(program: Program, sizes: Mapping[str, int], target: float, hardware: Hardware, tensor_bytes: int) -> Sized:
    """The batch that meets a target time as nearly as memory allows, work being linear in it."""
    derived = _derived(program, sizes)
    pilot = _measure(program, {**derived, BATCH: PILOT}, hardware)
    room = math.floor(PILOT * min(tensor_bytes / pilot.largest, TOTAL_BYTES / pilot.outside, LIVE_BYTES / pilot.live))
    batch = _round(PILOT * target / pilot.seconds, room)
    measured = _measure(program, {**derived, BATCH: batch}, hardware)
    if not 1 / SLACK < measured.seconds / target < SLACK:  # launches and large results cost more than a line says
        batch = _round(batch * target / measured.seconds, room)
        measured = _measure(program, {**derived, BATCH: batch}, hardware)
    final = {**derived, BATCH: batch}
    return Sized(task_source(program, final), final, measured.seconds)


def _round(batch: float, most: int) -> int:
    """The nearest batch with three significant bits, at most `most`; raises `NoFit` below 2."""
    if batch < 2 or most < 2:
        raise NoFit("even a batch of two is too much")
    batch = min(batch, most)
    grain = 1 << max(0, math.floor(math.log2(batch)) - 2)
    rounded = round(batch / grain) * grain
    return rounded if rounded <= most else rounded - grain


def _derived(program: Program, sizes: Mapping[str, int]) -> dict[str, int]:
    """Sizes of all labels that the source writes out, those that follow from others found by a run on fakes."""
    written = set(written_labels(program))
    if written <= {BATCH, *sizes}:
        return dict(sizes)
    known = label_sizes(program, {**sizes, BATCH: PILOT})
    return {label: known[label] for label in written}


def _measure(program: Program, sizes: Mapping[str, int], hardware: Hardware) -> _Measure:
    """Raises `NoFit` where the program does not run at these sizes."""
    try:
        reference = load_task_source(task_source(program, sizes))
        with FakeTensorMode(allow_non_fake_inputs=True):
            model, inputs = reference.build(), reference.get_inputs()
        graph_module = trace_eager(model, inputs)
    except Exception as error:  # whatever an operator raises at sizes that it does not take
        raise NoFit(f"does not run: {type(error).__name__}") from error
    return _read(graph_module, hardware)


def _read(graph_module: fx.GraphModule, hardware: Hardware) -> _Measure:
    own = [nbytes(node) for node in operations(graph_module) if not _is_view(node)]
    fed = [nbytes(entry.node) for entry in placeholders(graph_module)]
    given = sum(nbytes(node) for node in outputs(graph_module))
    return _Measure(eager_seconds(graph_module, hardware), max(own + fed), sum(fed) + given, sum(own) + sum(fed))


def _is_view(node: fx.Node) -> bool:
    return not isinstance(node.target, torch._ops.OpOverload) or node.target.is_view
