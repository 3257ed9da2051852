"""Sizes are chosen by this model: were it not monotone, the search for a batch would go astray."""

from __future__ import annotations

import pytest

from stages.graph.cost import eager_seconds
from stages.graph.reference import load_task_source
from stages.graph.trace import trace_eager
from tests.factories import hardware
from tests.stages.graph.sources import source

BODIES = {
    "pointwise": "return F.gelu(x) * x",
    "softmax": "return torch.softmax(x, -1)",
    "norm": "return F.layer_norm(x, [32])",
    "reduction": "return x.var(1)",
    "product": "return x @ x.new_ones(32, 16)",
    "sort": "return x.sort(-1).values",
    "pooling": "return F.max_pool1d(x, 2)",
    "loss": "return F.mse_loss(x, x.exp())",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_estimates_grow_with_the_batch(body):
    times = []
    for batch in (64, 128, 1024, 65536):
        reference = load_task_source(source(body, "x=torch.randn(BATCH, 32)", batch=batch))
        times.append(eager_seconds(trace_eager(reference.build(), reference.get_inputs()), hardware()))
    assert times == sorted(set(times))
