"""The roofline calls a kernel "too fast to be true": a bound that asks for too much would condemn honest ones."""

from __future__ import annotations

import pytest
import torch

from stages.graph.needs import needs
from stages.graph.reference import load_task_source
from stages.graph.trace import placeholders, trace_source
from stages.graph.work import work
from tests.stages.graph.sources import source

IMAGE = "x=torch.rand(2, 2, 8, 8)"
EXACT = {
    "pointwise": ("return x + 1", IMAGE, 1.0),
    "slice": ("return x[:, :1] * 2", IMAGE, 0.5),
    "two slices": ("return x[:, :1] * x[:, 1:]", IMAGE, 1.0),
    "overlapping slices": ("return x[..., :6] + x[..., 2:]", IMAGE, 1.0),
    "one half read twice": ("return x[:, :1] * x[:, :1].exp()", IMAGE, 0.5),
    "gated": ("return F.glu(x, 1)", IMAGE, 1.0),
    "chunks": ("a, b = x.chunk(2, -1); return a * b.sigmoid()", IMAGE, 1.0),
    "strided pooling": ("return F.avg_pool2d(x, 1, 2)", IMAGE, 0.25),
    "pooling that drops a border": ("return F.max_pool2d(x, 3)", IMAGE, 36 / 64),
    "strided convolution": ("return F.conv2d(x, torch.ones(1, 2, 1, 1), stride=2)", IMAGE, 0.25),
    "triangle": ("return torch.tril(x)", IMAGE, 36 / 64),
    "mirrored border": ("return F.pad(x, (1, 1, 1, 1), mode='reflect')", IMAGE, 1.0),
    "cropped": ("return F.pad(x, (-2, 0))", IMAGE, 0.75),
    "every second": ("return F.interpolate(x, scale_factor=0.5)", IMAGE, 0.25),
    "windows": ("return x.unfold(3, 2, 4).sum(-1)", IMAGE, 0.5),
    "flip and roll": ("return x.flip(1).roll(1, 2).cumsum(1)", IMAGE, 1.0),
    "diagonal": ("return x.diagonal(0, 2, 3).exp()", IMAGE, 1 / 8),
    "reduction": ("return x.std(dim=1)", IMAGE, 1.0),
    "normalised": ("return F.instance_norm(x)", IMAGE, 1.0),
    "concatenated": ("return torch.cat([x, x[:, :1]], 1)", IMAGE, 1.0),
    "selected": ("return x[:, 1].exp()", IMAGE, 0.5),
    "selected from a softmax": ("return torch.softmax(x, 1)[:, 0].exp()", IMAGE, 1.0),
}


@pytest.mark.parametrize("case", EXACT)
def test_needed_share_is_exact_for_what_models_use(case):
    """Also too low a bound would hurt: the roofline share of a good kernel would look poor."""
    body, inputs, expected = EXACT[case]
    assert _share(source(body, inputs)) == pytest.approx(expected)


@pytest.mark.parametrize("case", EXACT)
def test_needed_share_is_never_more_than_what_matters(case):
    """Counts the elements whose change shows in the output, one by one."""
    text = source(*EXACT[case][:2])
    reference = load_task_source(text)
    model, inputs = reference.build(), reference.get_inputs()
    with torch.no_grad():
        expected = model(*inputs)
        matters = 0
        for index in range(inputs[0].numel()):
            changed = inputs[0].clone()
            changed.view(-1)[index] += 1.0
            matters += not torch.equal(model(changed), expected)
    assert _share(text) <= matters / inputs[0].numel() + 1e-9


def test_gathers_count_the_rows_that_random_indices_hit():
    """A table larger than what is looked up need not be read whole."""
    lookup = source("return F.embedding(i, w)", "i=torch.randint(0, 1000, (4, 25)); w=torch.rand(1000, 8)")
    assert _share(lookup, 1) == pytest.approx(0.095, abs=0.005)


def test_unknown_operators_ask_for_nothing():
    """Without a rule the bound must give way, not guess."""
    assert _share(source("return torch.linalg.inv(x)", "x=torch.eye(4)")) == 0.0


def test_work_counts_products_in_full_and_parameters_apart():
    """A multiply-add is two operations; weights are read once."""
    done = work(trace_source(source("return self.l(x)", "x=torch.rand(8, 16)", "self.l = nn.Linear(16, 4)")))
    assert done.flops == 2 * 8 * 16 * 4
    assert done.parameter_bytes == 4 * (16 * 4 + 4)
    assert done.compulsory_bytes == 4 * (8 * 16 + 8 * 4) + done.parameter_bytes


def test_work_without_effect_is_not_counted():
    """Half of a product that nobody reads need not be computed."""
    whole, half = (
        work(trace_source(source(f"return (x @ w){cut}", "x=torch.rand(8, 16); w=torch.rand(16, 8)"))).flops
        for cut in ("", "[:4]")
    )
    assert half * 2 == whole


def _share(text: str, index: int = 0) -> float:
    graph_module = trace_source(text)
    inputs = [entry for entry in placeholders(graph_module) if entry.name.isdigit()]
    return needs(graph_module)[inputs[index].node]
