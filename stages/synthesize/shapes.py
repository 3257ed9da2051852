"""Sizes that follow from others: read off a run on fake tensors."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from schemas.tensor import Domain
from stages.synthesize.probes import NoFit
from stages.synthesize.program import ONE, Input, Program
from stages.synthesize.running import State, apply, feed, note_sizes


def label_sizes(program: Program, sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes of all labels of a program from those of its symbols; raises `NoFit` where it does not run."""
    state = State({}, {**sizes, ONE.label: 1})
    entries = {entry.name: entry for entry in program.inputs}
    shapes = program.shapes
    with FakeTensorMode(allow_non_fake_inputs=True):
        for step in program.steps:
            try:
                for name in step.arguments:
                    if name not in state.values:
                        state.values[name] = feed(entries[name], state.sizes, _empty)
                state.values[step.result] = apply(step, state, _made)
            except Exception as error:  # whatever an operator raises at sizes that it does not take
                raise NoFit(f"{step.operator.name} fails: {type(error).__name__}") from error
            note_sizes(shapes[step.result], state.values[step.result], state.sizes)
    return state.sizes


def _empty(entry: Input, shape: tuple[int, ...], bound: int | None) -> torch.Tensor:
    del bound
    kinds = {Domain.INDEX: torch.int64, Domain.BOOLEAN: torch.bool}
    return torch.empty(shape, dtype=kinds.get(entry.domain, torch.float32))


def _made(expression: str) -> nn.Module:
    made: nn.Module = eval(expression, {"torch": torch})  # noqa: S307 (a template that mining wrote)
    return made.eval()
