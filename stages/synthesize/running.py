"""Running a program at given sizes, on tiny real tensors."""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Callable, Mapping
from types import CodeType
from typing import NamedTuple, cast

import torch
from torch import nn

from stages.synthesize.program import Dim, Input, Step

Draw = Callable[[Input, tuple[int, ...], int | None], torch.Tensor]
"""Makes the content of an input from its shape and, for an index, its bound."""


Modules = Callable[[str], nn.Module]
"""Makes a module from an expression without names."""


class State(NamedTuple):
    """A run under way."""

    values: dict[str, torch.Tensor]
    sizes: dict[str, int]
    """Sizes of all labels, those that follow from others included."""


def feed(entry: Input, sizes: Mapping[str, int], draw: Draw) -> torch.Tensor:
    """The content of an input at given sizes."""
    shape = tuple(sizes[dim.label] for dim in entry.dims)
    return draw(entry, shape, None if entry.bound is None else sizes[entry.bound.label])


def apply(step: Step, state: State, modules: Modules) -> torch.Tensor:
    """The result of one step on values that are there already."""
    holder = nn.Module()
    constructor = step.constructor
    if constructor is not None:
        setattr(holder, step.result, modules(filled(constructor, state.sizes)))
    names = {"torch": torch, "self": holder, **state.sizes, **state.values}
    with torch.no_grad():
        return cast(torch.Tensor, eval(_compiled(step.call), names))  # noqa: S307 (a template that mining wrote)


def note_sizes(dims: tuple[Dim, ...], value: torch.Tensor, sizes: dict[str, int]) -> None:
    """Notes the sizes of labels that first appear in this value."""
    for dim, size in zip(dims, value.shape, strict=True):
        sizes.setdefault(dim.label, size)


@functools.lru_cache(1024)
def module(expression: str) -> nn.Module:
    """The module that an expression without names makes, for evaluation, drawn from a fixed seed. Not to be changed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return cast(nn.Module, eval(_compiled(expression), {"torch": torch})).eval()  # noqa: S307 (as above)


@functools.lru_cache(1024)
def double_module(expression: str) -> nn.Module:
    """The same in float64."""
    return copy.deepcopy(module(expression)).double()


@functools.lru_cache(1024)
def redrawn_module(expression: str, parameter: str) -> nn.Module:
    """The same with one parameter drawn anew."""
    other = copy.deepcopy(module(expression))
    with torch.no_grad():
        values = other.get_parameter(parameter)
        values.add_(torch.randn(values.shape, generator=torch.Generator().manual_seed(1)), alpha=0.2)
    return other


def filled(expression: str, sizes: Mapping[str, int]) -> str:
    """The expression with labels replaced by their sizes, so that equal modules are made once."""
    return re.sub(r"\b[A-Z][A-Z0-9_]*\b", lambda found: str(sizes.get(found[0], found[0])), expression)


@functools.lru_cache(4096)
def _compiled(expression: str) -> CodeType:
    return compile(expression, "<composition>", "eval")
