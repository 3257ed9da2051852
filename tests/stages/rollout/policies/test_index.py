"""If these fail, kernels read from the wrong places."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from stages.rollout.policies.codegen import index as ix
from stages.rollout.policies.codegen.cpp.text import index_text
from stages.rollout.policies.codegen.index import Axis, Index

AXES = (Axis("a", 3), Axis("b", 4), Axis("c", 6))
POINTS = list(product(*[range(axis.extent) for axis in AXES]))

factors = st.integers(min_value=-30, max_value=30)
divisors = st.integers(min_value=1, max_value=30)


@st.composite
def indices(draw: st.DrawFn) -> Index:
    """Sums of axes, divided and taken apart a few times."""
    index = ix.constant(draw(st.integers(0, 40)))
    for axis in AXES:
        index = index + ix.of(axis) * draw(st.integers(0, 12))
    for _ in range(draw(st.integers(0, 3))):
        by = draw(divisors)
        index = draw(st.sampled_from([ix.floor_divide(index, by), ix.remainder(index, by), index * by]))
    return index


def value(index: Index, point: tuple[int, ...]) -> int:
    """What an index is at a point, by the text that goes into the kernels."""
    names = {axis.name: number for axis, number in zip(AXES, point, strict=True)}
    text = index_text(index, lambda axis: axis.name, str).replace("/", "//")
    return eval(text, {"floor_division": lambda a, b: a // b}, names)


@given(indices(), divisors)
def test_division_and_remainder_are_those_of_integers(index: Index, by: int):
    quotient, rest = ix.floor_divide(index, by), ix.remainder(index, by)
    for point in POINTS:
        number = value(index, point)
        assert value(quotient, point) == number // by
        assert value(rest, point) == number % by


@given(indices())
def test_bounds_hold_every_value(index: Index):
    values = [value(index, point) for point in POINTS]
    assert index.bounds.low <= min(values)
    assert max(values) <= index.bounds.high


@given(st.permutations([2, 3, 4, 6, 1]), st.permutations([6, 4, 3, 2]))
def test_a_reshape_there_and_back_is_nothing(shape: list[int], other: list[int]):
    axes = [Axis(f"d{place}", size) for place, size in enumerate(shape)]
    at = tuple(ix.of(axis) for axis in axes)
    there = ix.unflatten(ix.flatten(at, shape), tuple(other))
    assert ix.unflatten(ix.flatten(there, other), tuple(shape)) == at


@given(indices(), factors)
def test_an_index_minus_itself_is_zero(index: Index, factor: int):
    assert (index * factor - index * factor).value == 0
