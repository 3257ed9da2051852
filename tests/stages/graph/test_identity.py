"""Hashes decide what is a duplicate: a false match loses tasks, a missed one leaks them between splits."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.graph.identity import Detail, graph_hash, hash_graph, structure_hash
from stages.graph.trace import trace_source
from tests.stages.graph.sources import source

X = "x=torch.randn(BATCH, 6)"
XY = f"{X}; y=torch.randn(BATCH, 6)"


LINEAR = "self.{0} = nn.Linear(6, 3)"
BATCH_MEAN = "return F.kl_div(x, y.abs(), reduction='batchmean')"


def structure(body: str, inputs: str = XY, made: str = "pass", batch: int = 4) -> str:
    return structure_hash(trace_source(source(body, inputs, made, batch)))


SAME = {
    "commuted": (("return x + y",), ("return y + x",)),
    "renamed": (("return x - y",), ("return a - b", "a=torch.randn(BATCH, 6); b=torch.randn(BATCH, 6)")),
    "arguments swapped": (("return x - y",), ("return y - x",)),
    "statements reordered": (("a = x.exp(); b = y.sin(); return a - b",), ("b = y.sin(); a = x.exp(); return a - b",)),
    "common subexpression": (("return x.exp() + x.exp() * y",), ("e = x.exp(); return e + e * y",)),
    "dead code": (("return x + y",), ("z = x.exp(); return x + y",)),
    "copies": (("return x + y",), ("return x.clone() + y.contiguous()",)),
    "other batch": (("return x + y",), ("return x + y", XY, "pass", 32)),
    "attribute renamed": (("return self.a(x)", X, LINEAR.format("a")), ("return self.b(x)", X, LINEAR.format("b"))),
    "size in a divisor": ((BATCH_MEAN, XY, "pass", 16), (BATCH_MEAN, XY, "pass", 64)),
}
DIFFERENT = {
    "add": ("return x + y",),
    "sub": ("return x - y",),
    "one input twice": ("return x - x.exp()",),
    "two inputs": ("return x - y.exp()",),
    "other order": ("return x.exp() - y",),
    "scaled": ("return (x + y) * 1.5",),
    "scaled otherwise": ("return (x + y) * 2.5",),
    "sum of rows": ("return (x + y).sum(1)",),
    "sum of columns": ("return (x + y).sum(0)",),
    "kept": ("return (x + y).sum(1, keepdim=True)",),
    "merged": ("return (x + y).view(-1)",),
    "split": ("return (x + y).view(-1, 2, 3)",),
    "first half": ("return (x + y)[:, :3]",),
    "second half": ("return (x + y)[:, 3:]",),
    "parameter": ("return x + self.w", X, "self.w = nn.Parameter(torch.ones(4, 6))"),
    "broadcast": ("return x + y", f"{X}; y=torch.randn(BATCH, 1)"),
}


@pytest.mark.parametrize("case", SAME)
def test_rewrites_keep_the_structure(case):
    """A duplicate that only looks different would be trained on twice, or leak."""
    one, other = SAME[case]
    assert structure(*one) == structure(*other)


def test_real_changes_change_the_structure():
    """Different tasks must not be thrown away as duplicates."""
    hashes = {case: structure(*arguments) for case, arguments in DIFFERENT.items()}
    for one, other in itertools.combinations(hashes, 2):
        assert hashes[one] != hashes[other], (one, other)


def test_sizes_change_the_exact_hash_only():
    """The graph hash tells sizes apart, the structure hash does not."""
    small, large = (trace_source(source("return x + y", XY, batch=batch)) for batch in (4, 8))
    assert graph_hash(small) != graph_hash(large)
    assert structure_hash(small) == structure_hash(large)


def test_a_function_and_its_layer_are_one_computation():
    """Mining would otherwise list every layer twice."""
    layer = trace_source(source("return self.l(x)", X, "self.l = nn.Linear(6, 3)"))
    function = trace_source(source("return F.linear(x, w, b)", f"{X}; w=torch.randn(3, 6); b=torch.randn(3)"))
    assert hash_graph(layer, Detail.COMPUTATION) == hash_graph(function, Detail.COMPUTATION)
    assert structure_hash(layer) != structure_hash(function)


OPERATIONS = ("torch.add({0}, {1})", "torch.mul({0}, {1})", "torch.sub({0}, {1})", "torch.maximum({0}, {1})")


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=5),
    st.randoms(),
)
def test_any_program_survives_renaming_and_commuting(steps, random):
    """The two rewrites that anyone can make without thinking must never produce a "new" task."""
    original, rewritten = [], []
    names, others = ["x", "y"], ["b0", "b1"]
    for index, (operation, left, right) in enumerate(steps):
        first, second = left % len(names), right % len(names)
        original.append(f"v{index} = {operation.format(names[first], names[second])}")
        swap = operation[:9] in ("torch.add", "torch.mul") and random.random() < 0.5
        pair = (others[second], others[first]) if swap else (others[first], others[second])
        rewritten.append(f"w{index} = {operation.format(*pair)}")
        names.append(f"v{index}")
        others.append(f"w{index}")
    one = structure("; ".join([*original, f"return {names[-1]}"]))
    renamed = "b0=torch.randn(BATCH, 6); b1=torch.randn(BATCH, 6)"
    assert one == structure("; ".join([*rewritten, f"return {others[-1]}"]), renamed)
