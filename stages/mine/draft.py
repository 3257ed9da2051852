"""One call becomes one operator record, or is refused."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import fx
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

from schemas.operator import Argument, Operator
from schemas.tensor import Domain, Dtype, TensorSpec
from stages.graph.identity import Detail, hash_graph
from stages.graph.reference import load_task_source
from stages.graph.trace import aten_names, operations, trace_source
from stages.mine.conduct import check_conduct, check_dependence
from stages.mine.domains import float_domains, index_bounds
from stages.mine.execution import parameter_names
from stages.mine.family import family
from stages.mine.invocation import Invocation, Variable
from stages.mine.naming import names, tie_of
from stages.mine.refusal import Refused
from stages.mine.signature import Signature, infer
from stages.mine.template import call_text, constructor_text, reference_source

LICENCE = "BSD-3-Clause"
"""Of torch, from its package metadata."""
LEADING = {"batch": 4, "length": 6}
"""What a `*` is in the reference source: both where nothing else follows, else the first."""


class Typed(NamedTuple):
    """A call with all that is known of its arguments."""

    constructor: str | None
    call: str
    arguments: tuple[Argument, ...]
    inputs: tuple[TensorSpec, ...]
    source: str

    @property
    def key(self) -> str:
        """Equal for two calls that differ in sizes only."""
        return f"{self.constructor} {self.call} {[argument.dims for argument in self.arguments]}"


def learn(invocation: Invocation) -> Typed:
    """What a plain call may be applied to; raises `Refused`."""
    check_conduct(invocation)
    return _typed(infer(invocation))


def draft(name: str, invocation: Invocation, typed: Typed) -> Operator:
    """The record of a call; raises `Refused`."""
    graph_module = _trace(typed.source)
    is_loss = "reduction" in parameter_names(invocation.target)
    return Operator.create(
        name=name,
        library="torch",
        library_version=torch.__version__,
        licence=LICENCE,
        family=family(graph_module, is_loss=is_loss),
        form=invocation.form,
        constructor=typed.constructor,
        call=typed.call,
        arguments=typed.arguments,
        source=typed.source,
        inputs=typed.inputs,
        aten_ops=aten_names(graph_module),
        graph_hash=hash_graph(graph_module, Detail.COMPUTATION),
        aliases=(),
    )


def _typed(signature: Signature) -> Typed:
    named = names(signature)
    by_variable = {variable: name for tie, name in named.items() for variable in tie}
    domains, bounds = float_domains(signature), index_bounds(signature)
    check_dependence(signature.invocation, domains)
    sizes = signature.invocation.variables()
    rests = [len(leaf.shape) - signature.starred.get(address, 0) for address, leaf in signature.invocation.tensors()]
    leading = dict(list(LEADING.items())[: 1 if min(rests) else None])
    arguments, dims, inputs, limits = [], [], [], []
    for address, leaf in signature.invocation.tensors():
        depth = signature.starred.get(address)
        core = [named[tie_of(signature, Variable(address, dim))] for dim in range(depth or 0, len(leaf.shape))]
        bound = bounds.get(address)
        domain = domains.get(address, Domain.INDEX if leaf.dtype is Dtype.INT64 else Domain.BOOLEAN)
        limit = None if bound is None else named.get(bound)
        if bound is not None and limit is None:
            raise Refused("unknown_bound", "a leading dimension bounds an index argument")
        star = ("*",) if depth is not None else ()
        arguments.append(Argument(dims=(*star, *core), dtype=leaf.dtype, domain=domain, bound_dim=limit))
        shape = (*(leading.values() if star else ()), *leaf.shape[depth or 0 :])
        dims.append([*(leading if star else ()), *core])
        inputs.append(
            TensorSpec(shape=shape, dtype=leaf.dtype, domain=domain, bound=None if bound is None else sizes[bound[0]])
        )
        limits.append(limit)
    constructor = constructor_text(signature.invocation, by_variable)
    call = call_text(signature.invocation, by_variable)
    known = {by_variable[variable]: size for variable, size in sizes.items() if variable in by_variable}
    source = reference_source(constructor, call, dims, inputs, limits, known)
    return Typed(constructor, call, tuple(arguments), tuple(inputs), source)


def _trace(source: str) -> fx.GraphModule:
    """The graph of a reference that also runs for real; raises `Refused`."""
    try:
        reference = load_task_source(source)
        with torch.no_grad():
            reference.build()(*reference.get_inputs())
    except Exception as error:  # whatever the callee raises
        raise Refused("does_not_run", f"its reference fails: {_say(error)}") from error
    try:
        graph_module = trace_source(source)
    except (DynamicOutputShapeException, DataDependentOutputException) as error:
        raise Refused("data_dependent", "shapes or branches depend on values") from error
    except Exception as error:  # tracing meets anything
        raise Refused("does_not_trace", _say(error)) from error
    for node in operations(graph_module):
        if isinstance(node.target, torch._ops.OpOverload):
            if node.target._schema.is_mutable:
                raise Refused("in_place", f"{node.target} works in place")
            if torch.Tag.nondeterministic_seeded in node.target.tags:
                raise Refused("random", f"{node.target} draws random numbers")
            if torch.Tag.data_dependent_output in node.target.tags:
                raise Refused("data_dependent", f"{node.target} depends on values")
    return graph_module


def _say(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200] if lines else ''}"
