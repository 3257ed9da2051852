"""A task's forward pass as a graph of core aten operators, with what its placeholders are called in `forward`."""

from __future__ import annotations

import warnings
from typing import NamedTuple

from torch.fx import Graph

from stages.graph.reference import load_task_source
from stages.graph.trace import Role, placeholders, trace_source


class TraceFailed(Exception):
    """The task has no static graph, or is no module of the expected form. Says which."""


class Feed(NamedTuple):
    """What a placeholder of the graph stands for."""

    role: Role
    name: str
    """Argument of `forward`, or dotted path of the parameter or buffer."""


class Trace(NamedTuple):
    """A traced forward pass."""

    graph: Graph
    feeds: tuple[Feed, ...]
    """One per placeholder, in the graph's order."""
    inputs: tuple[str, ...]
    """Arguments of `forward` that the task feeds."""
    returns_tuple: bool


def trace(source: str) -> Trace:
    """The graph of a task in KernelBench's form; raises `TraceFailed`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what PyTorch has to say about a task is not for the policy's log
            module = trace_source(source)
        code = load_task_source(source).model_class.forward.__code__
    except Exception as error:  # whatever a task's own code raises
        raise TraceFailed(f"{type(error).__name__}: {error}") from error
    names = code.co_varnames[1 : code.co_argcount]
    entries = placeholders(module)
    taken = sum(entry.role is Role.INPUT for entry in entries)
    if taken > len(names):
        raise TraceFailed("forward takes a variable number of tensors")
    feeds = [Feed(role, names[int(name)] if role is Role.INPUT else name) for _, role, name in entries]
    returned = module.graph.output_node().args[0]
    return Trace(module.graph, tuple(feeds), tuple(names[:taken]), isinstance(returned, (tuple, list)))
