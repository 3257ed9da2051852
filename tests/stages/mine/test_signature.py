"""The signature is what a composer applies an operator by: a wrong tie gives tasks that crash at other sizes."""

from __future__ import annotations

import pytest
import torch

from schemas.operator import Form
from schemas.tensor import Domain
from stages.mine.draft import learn
from stages.mine.invocation import Invocation, as_arguments
from stages.mine.refusal import Refused
from stages.mine.simplify import plain_form

pytestmark = pytest.mark.filterwarnings("ignore")


def function(name: str, *positional: object, **keyword: object) -> Invocation:
    return Invocation(f"torch.{name}", Form.FUNCTION, as_arguments(positional, keyword))


def module(name: str, init: tuple[object, ...], *positional: object, **options: object) -> Invocation:
    return Invocation(f"torch.nn.{name}", Form.MODULE, as_arguments(positional, {}), as_arguments(init, options))


def floats(*shape: int) -> torch.Tensor:
    return torch.rand(shape)


def integers(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.int64)


TABLE = [
    (function("nn.functional.relu", floats(3, 5)), None, "torch.nn.functional.relu({0})", [("*",)]),
    (function("add", floats(5, 5), floats(5, 5)), None, "torch.add({0}, {1})", [("*",), ("*",)]),
    (function("add", floats(5, 5), floats(5)), None, "torch.add({0}, {1})", [("*", "features"), ("features",)]),
    (function("softmax", floats(5, 5), 1), None, "torch.softmax({0}, -1)", [("*", "features")]),
    (function("softmax", floats(5, 5), 0), None, "torch.softmax({0}, -2)", [("*", "length", "features")]),
    (function("sum", floats(4, 5), dim=1), None, "torch.sum({0}, dim=-1)", [("*", "features")]),
    (function("bmm", floats(2, 5, 5), floats(2, 5, 5)), None, "torch.bmm({0}, {1})",
     [("batch", "channels", "length"), ("batch", "length", "m")]),
    (function("max", floats(5, 5), 1), None, "torch.max({0}, -1).values", [("*", "features")]),
    (function("cat", [floats(5, 5), floats(5, 5)], dim=1), None, "torch.cat([{0}, {1}], dim=-1)",
     [("*", "features"), ("*", "m")]),
    (function("gather", floats(5, 5), 1, integers(5, 5)), None, "torch.gather({0}, -1, {1})",
     [("*", "features"), ("*", "m")]),
    (function("nn.functional.linear", floats(4, 6), floats(6, 6), floats(6)), None,
     "torch.nn.functional.linear({0}, {1}, {2})", [("*", "features"), ("m", "features"), ("m",)]),
    (module("Linear", (6, 6), floats(4, 6)), "torch.nn.Linear({in_features}, {out_features})", "{self}({0})",
     [("*", "in_features")]),
    (module("LayerNorm", ([5],), floats(5, 5), eps=0.5), "torch.nn.LayerNorm({normalized_shape})", "{self}({0})",
     [("*", "normalized_shape")]),
    (module("Conv2d", (4, 4, 3), floats(4, 4, 4, 4)),
     "torch.nn.Conv2d({in_channels}, {out_channels}, 3)", "{self}({0})", [("batch", "in_channels", "height", "width")]),
    (module("GroupNorm", (3, 6), floats(6, 6, 6)), "torch.nn.GroupNorm(3, {num_channels})", "{self}({0})",
     [("batch", "num_channels", "length")]),
    (module("Embedding", (6, 6), integers(6)), "torch.nn.Embedding({num_embeddings}, {embedding_dim})", "{self}({0})",
     [("*",)]),
]  # fmt: skip


@pytest.mark.parametrize(("call", "constructor", "template", "dims"), TABLE, ids=[row[0].target for row in TABLE])
def test_known_operators(call, constructor, template, dims):
    """All sizes equal on purpose: only changing them can tell which are tied."""
    typed = learn(plain_form(call))
    assert (typed.constructor, typed.call) == (constructor, template)
    assert [argument.dims for argument in typed.arguments] == dims


DOMAINS = [
    (function("log", floats(4)), [Domain.POSITIVE]),
    (function("asin", floats(4)), [Domain.SYMMETRIC_UNIT]),
    (function("logit", floats(4)), [Domain.UNIT]),
    (function("div", floats(4), floats(4)), [Domain.REAL, Domain.POSITIVE]),
    (function("nn.functional.binary_cross_entropy", floats(4), floats(4)), [Domain.UNIT, Domain.UNIT]),
    (function("tanh", floats(4)), [Domain.REAL]),
]


@pytest.mark.parametrize(("call", "domains"), DOMAINS, ids=[row[0].target for row in DOMAINS])
def test_domains_are_the_widest_that_stay_finite(call, domains):
    """A logarithm fed with negatives gives NaN, which no verdict can be built on."""
    assert [argument.domain for argument in learn(plain_form(call)).arguments] == domains


def test_an_index_is_bounded_by_the_size_that_it_points_into():
    """Else composed tasks would index out of range."""
    loss = learn(plain_form(function("nn.functional.cross_entropy", floats(5, 5), integers(5))))
    assert [argument.bound_dim for argument in loss.arguments] == [None, "features"]
    table = learn(plain_form(module("Embedding", (6, 6), integers(6))))
    assert [argument.bound_dim for argument in table.arguments] == ["num_embeddings"]


REFUSED = [
    ("random", function("nn.functional.dropout", floats(8, 8), training=True)),
    ("in_place", function("relu_", floats(4, 4))),
    ("no_float_output", function("argmax", floats(4, 4))),
    ("several_outputs", function("aminmax", floats(4, 4))),
    ("several_outputs", function("split", floats(4, 4), 2)),
    ("identity", function("clone", floats(4, 4))),
    ("dead_argument", function("zeros_like", floats(4, 4))),
    ("mode_dependent", module("BatchNorm1d", (4,), floats(6, 4))),
    ("mode_dependent", module("Dropout", (0.5,), floats(6, 4))),
    ("unbatched", module("Conv1d", (4, 4, 3), floats(4, 8))),
    ("fixed_shape", function("reshape", floats(4, 4), [8, 2])),
    ("does_not_run", function("mm", floats(4, 3), floats(4, 3))),
    ("no_float_input", function("bitwise_not", integers(4))),
]


@pytest.mark.parametrize(("reason", "call"), REFUSED, ids=[f"{row[1].target} {row[0]}" for row in REFUSED])
def test_what_is_no_operator_is_refused_with_its_reason(reason, call):
    """Such a task could be neither judged nor learned from."""
    with pytest.raises(Refused) as refused:
        learn(plain_form(call))
    assert refused.value.reason == reason
