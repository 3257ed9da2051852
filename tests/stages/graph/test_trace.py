"""A wrong trace would make every hash, bound and generated kernel wrong."""

from __future__ import annotations

import pytest
import torch

from stages.graph.reference import load_task_source
from stages.graph.trace import Role, aten_names, outputs, placeholders, trace, trace_eager, trace_source
from tests.stages.graph.sources import source

CHAIN = source(
    "y = F.gelu(self.linear(x)); y = y.add_(1); return torch.softmax(y * z, -1)",
    "x=torch.randn(BATCH, 6); z=torch.randn(BATCH, 5)",
    "self.linear = nn.Linear(6, 5); self.register_buffer('scale', torch.ones(2))",
)


def test_graph_computes_what_the_model_computes():
    """Else kernels would be generated for another function."""
    reference = load_task_source(CHAIN)
    model, inputs = reference.build(), reference.get_inputs()
    graph_module = trace(model, inputs)
    with torch.no_grad():
        expected = model(*inputs)
        given = graph_module(*model.parameters(), *model.buffers(), *inputs)
    torch.testing.assert_close(given, expected)


def test_placeholders_say_what_they_are_even_unused_ones():
    """A policy must know which value is which parameter, and an unused buffer must not shift the rest."""
    entries = [(entry.role, entry.name) for entry in placeholders(trace_source(CHAIN))]
    assert entries == [
        (Role.PARAMETER, "linear.weight"),
        (Role.PARAMETER, "linear.bias"),
        (Role.BUFFER, "scale"),
        (Role.INPUT, "0"),
        (Role.INPUT, "1"),
    ]


def test_in_place_operators_become_pure():
    """A graph with mutation cannot be reordered or fused by its edges alone."""
    names = aten_names(
        trace_source(source("y = x + 1; return F.cosine_similarity(y, y.mul_(2))", "x=torch.randn(3, 4)"))
    )
    assert not any(name.split(".")[1].endswith("_") for name in names)


def test_tracing_allocates_nothing():
    """Tasks are traced at sizes that would not fit into memory twice."""
    graph_module = trace_source(source("return x + 1", "x=torch.randn(1 << 20, 1 << 20)"))
    assert tuple(outputs(graph_module)[0].meta["val"].shape) == (1 << 20, 1 << 20)


def test_eager_graph_keeps_composite_kernels_whole():
    """Eager's time is estimated by its kernels: mish is one, not the six of its decomposition."""
    reference = load_task_source(source("return F.mish(x)", "x=torch.randn(4)"))
    assert aten_names(trace_eager(reference.build(), reference.get_inputs())) == ("aten.mish.default",)


def test_incomplete_source_is_refused_by_name():
    """Whoever writes a broken source must read what it lacks."""
    with pytest.raises(ValueError, match="get_inputs, get_init_inputs"):
        load_task_source("class Model: pass")
