"""A call as data: which function or module, with which tensors and literals, so that its sizes can be varied."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import torch

from schemas.operator import Form
from schemas.tensor import Dtype

Key = int | str
Address = tuple[Key, ...]
"""Where a leaf stands: `init` or `call`, then positions and keywords down to it."""

DTYPES = {torch.float32: Dtype.FLOAT32, torch.int64: Dtype.INT64, torch.bool: Dtype.BOOL}


class TensorLeaf(NamedTuple):
    """A tensor argument."""

    shape: tuple[int, ...]
    dtype: Dtype


Literal = int | float | bool | str | None
Tree = TensorLeaf | Literal | list["Tree"]


class Unprintable(Exception):
    """An argument that no source text stands for: a generator, a complex number, a tensor of an odd element type."""


class Variable(NamedTuple):
    """A size that may be varied: a dimension of a tensor argument, or an integer argument (`dim` null)."""

    address: Address
    dim: int | None


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Positional and keyword arguments."""

    positional: tuple[Tree, ...] = ()
    keyword: tuple[tuple[str, Tree], ...] = ()

    def items(self) -> Iterator[tuple[Key, Tree]]:
        """Arguments by position or keyword, in order."""
        yield from enumerate(self.positional)
        yield from self.keyword

    def map(self, change: Callable[[Key, Tree], Tree]) -> Arguments:
        """The same arguments, each replaced."""
        return Arguments(
            tuple(change(index, value) for index, value in enumerate(self.positional)),
            tuple((name, change(name, value)) for name, value in self.keyword),
        )

    def without(self, key: Key) -> Arguments:
        """The same without the last positional argument or a keyword."""
        if isinstance(key, int):
            return Arguments(self.positional[:-1], self.keyword)
        return Arguments(self.positional, tuple(item for item in self.keyword if item[0] != key))


@dataclasses.dataclass(frozen=True)
class Invocation:
    """A call of `target`, a dotted public path; a module is made with `init` first."""

    target: str
    form: Form
    call: Arguments
    init: Arguments = Arguments()
    pick: str = ""
    """What to take of the result: empty, `.values` or the like."""

    def leaves(self) -> Iterator[tuple[Address, TensorLeaf | Literal]]:
        """All leaves with their addresses: those of `init`, then those of `call`."""
        for part in ("init", "call"):
            for key, tree in getattr(self, part).items():
                yield from _walk(tree, (part, key))

    def tensors(self) -> list[tuple[Address, TensorLeaf]]:
        """The tensor arguments in order."""
        return [(address, leaf) for address, leaf in self.leaves() if isinstance(leaf, TensorLeaf)]

    def variables(self) -> dict[Variable, int]:
        """All sizes that might be varied: dimensions of tensors, and integers from 2 up."""
        sizes: dict[Variable, int] = {}
        for address, leaf in self.leaves():
            if isinstance(leaf, TensorLeaf):
                sizes |= {Variable(address, dim): size for dim, size in enumerate(leaf.shape)}
            elif isinstance(leaf, int) and not isinstance(leaf, bool) and leaf >= 2:
                sizes[Variable(address, None)] = leaf
        return sizes

    def resized(self, sizes: Mapping[Variable, int]) -> Invocation:
        """The same call at other sizes."""

        def change(address: Address, leaf: TensorLeaf | Literal) -> Tree:
            if isinstance(leaf, TensorLeaf):
                shape = tuple(sizes.get(Variable(address, dim), size) for dim, size in enumerate(leaf.shape))
                return TensorLeaf(shape, leaf.dtype)
            return sizes.get(Variable(address, None), leaf) if isinstance(leaf, int) else leaf

        return self.changed(change)

    def reshaped(self, shapes: Mapping[Address, tuple[int, ...]]) -> Invocation:
        """The same call with other shapes for some tensors."""

        def change(address: Address, leaf: TensorLeaf | Literal) -> Tree:
            return (
                TensorLeaf(shapes[address], leaf.dtype) if isinstance(leaf, TensorLeaf) and address in shapes else leaf
            )

        return self.changed(change)

    def changed(self, change: Callable[[Address, TensorLeaf | Literal], Tree]) -> Invocation:
        """The same call, every leaf replaced."""
        return dataclasses.replace(
            self,
            init=self.init.map(lambda key, tree: _mapped(tree, ("init", key), change)),
            call=self.call.map(lambda key, tree: _mapped(tree, ("call", key), change)),
        )


def as_tree(value: object) -> Tree:
    """A concrete argument as data; raises `Unprintable`."""
    if isinstance(value, torch.Tensor):
        if value.dtype not in DTYPES or value.layout is not torch.strided:
            raise Unprintable(f"a {value.layout} tensor of {value.dtype}")
        return TensorLeaf(tuple(value.shape), DTYPES[value.dtype])
    if isinstance(value, (list, tuple)):
        return [as_tree(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise Unprintable(f"a {type(value).__name__} argument")


def as_arguments(positional: Sequence[object], keyword: Mapping[str, object]) -> Arguments:
    """Concrete arguments as data; raises `Unprintable`."""
    return Arguments(
        tuple(as_tree(value) for value in positional), tuple((name, as_tree(value)) for name, value in keyword.items())
    )


def _walk(tree: Tree, address: Address) -> Iterator[tuple[Address, TensorLeaf | Literal]]:
    if isinstance(tree, list):
        for index, item in enumerate(tree):
            yield from _walk(item, (*address, index))
    else:
        yield address, tree


def _mapped(tree: Tree, address: Address, change: Callable[[Address, TensorLeaf | Literal], Tree]) -> Tree:
    if isinstance(tree, list):
        return [_mapped(item, (*address, index), change) for index, item in enumerate(tree)]
    return change(address, tree)
