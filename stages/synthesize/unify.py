"""Fitting an operator's named dimensions onto a value's."""

from __future__ import annotations

from typing import NamedTuple

from schemas.operator import Argument, Operator
from stages.synthesize.program import ONE, Dim, template_names

STAR = "*"


class Bindings(NamedTuple):
    """What the names of an operator stand for so far."""

    names: dict[str, Dim]
    leading: tuple[Dim, ...] | None
    """What its `*` stands for; null while nothing decided it."""


NOTHING = Bindings({}, None)


def batch_name(operator: Operator) -> str | None:
    """The only name that may stand for something that grows with the batch, so that work stays linear in it."""
    first = operator.arguments[0].dims[0]
    return None if first == STAR or first in template_names(operator) else first


def unify(operator: Operator, argument: Argument, dims: tuple[Dim, ...], bindings: Bindings) -> Bindings | None:
    """The bindings that make an argument take a value of these dimensions; null where there are none.

    No name stands for a dimension of size 1: there would be nothing to reduce.
    """
    starred = argument.dims[:1] == (STAR,)
    core = argument.dims[1:] if starred else argument.dims
    split = len(dims) - len(core)
    if split < 0 or (split > 0 and not starred):
        return None
    leading = dims[:split] if starred else bindings.leading
    if starred and bindings.leading is not None and bindings.leading != leading:
        return None
    names = dict(bindings.names)
    for name, dim in zip(core, dims[split:], strict=True):
        if dim == ONE or (dim.scales and name != batch_name(operator)) or names.setdefault(name, dim) != dim:
            return None
    return Bindings(names, leading)


def expected(argument: Argument, bindings: Bindings) -> tuple[Dim | str, ...]:
    """The dimensions that an argument must have: known ones, and names that nothing decided yet."""
    starred = argument.dims[:1] == (STAR,)
    core = argument.dims[1:] if starred else argument.dims
    return (*((bindings.leading or ()) if starred else ()), *(bindings.names.get(name, name) for name in core))
