"""What looks like work and is none must not become a task."""

from __future__ import annotations

import pytest

from schemas.operator import Operator
from schemas.tensor import Domain, Dtype
from stages.synthesize.merits import check_step, check_whole
from stages.synthesize.probes import Bench, NoFit
from stages.synthesize.program import BATCH, Dim, Input, Step
from stages.synthesize.unify import NOTHING, unify

DIMS = (Dim(BATCH, scales=True), Dim("FEATURES", scales=False))


def chain(operators: list[Operator], *names: str) -> Bench:
    """One operator after the other on `x`, all checks on the way."""
    bench = Bench.empty().with_input(Input("x", DIMS, Dtype.FLOAT32, Domain.REAL, None))
    value = "x"
    for index, name in enumerate(names):
        operator = next(operator for operator in operators if operator.name == f"torch.{name}")
        found = unify(operator, operator.arguments[0], bench.program.shapes[value], NOTHING)
        assert found is not None
        step = Step(operator, tuple(found.names.items()), (value,) * len(operator.arguments), f"v{index}")
        bench = bench.extended(step)
        check_step(bench, step)
        value = step.result
    check_whole(bench)
    return bench


GOOD = [("nn.functional.gelu",), ("nn.LayerNorm", "nn.functional.silu"), ("tanh", "exp"), ("softmax", "cumsum")]
BAD = [
    (("nn.functional.relu", "nn.functional.relu"), "changes nothing"),
    (("softmax", "sum"), "constant"),
    (("nn.LayerNorm", "nn.LayerNorm"), "changes nothing"),
    (("exp",), "not finite"),
    (("nn.LayerNorm", "exp"), "explodes"),
    (("log",), "not finite"),
]


@pytest.mark.parametrize("names", GOOD, ids=" ".join)
def test_useful_chains_pass(operators, names):
    assert chain(operators, *names).program.steps[-1].operator.name == f"torch.{names[-1]}"


@pytest.mark.parametrize(("names", "why"), BAD, ids=[" ".join(row[0]) for row in BAD])
def test_trivial_or_unsafe_chains_are_refused(operators, names, why):
    with pytest.raises(NoFit, match=why):
        chain(operators, *names)


def test_dimensions_keep_their_names_through_a_step(operators):
    """A later layer must be as wide as the value is, at any size."""
    pooled = chain(operators, "nn.functional.silu", "nn.functional.glu").program
    batch, features = pooled.shapes[pooled.result]
    assert batch == DIMS[0]
    assert features not in DIMS
    assert not features.scales
