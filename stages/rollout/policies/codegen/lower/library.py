"""What stays with PyTorch: an operator without a loop form here becomes a line of Python in `forward`."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.fx import Node
from torch.fx.node import Argument as FxArgument

from stages.rollout.policies.codegen.lower.context import Call, Result
from stages.rollout.policies.codegen.lower.lowering import dtype_of
from stages.rollout.policies.codegen.lower.values import NotLowered, Value

DROPPED = ("device", "layout", "pin_memory", "memory_format")
"""Keywords that tracing adds and that a reader would not write."""


def library(call: Call) -> Result:
    """The node as a call of PyTorch; its operands are stored where no Python expression gives them."""
    uses: list[str] = []
    positional = [_text(argument, call, uses) for argument in call.node.args]
    keywords = [f"{key}={_text(value, call, uses)}" for key, value in call.node.kwargs.items() if key not in DROPPED]
    python = f"{_function(call.node)}({', '.join(positional + keywords)})"
    name = call.lowering.call(call.node.name, python, call.name, uses)
    meta = call.node.meta.get("val")
    if isinstance(meta, (tuple, list)):
        return tuple(_result(call, name, f"{name}[{i}]", one) for i, one in enumerate(meta))
    return _result(call, name, name, meta)


def _result(call: Call, name: str, python: str, meta: object) -> Value:
    if not isinstance(meta, torch.Tensor):
        raise NotLowered("a result that is no tensor")
    shape = tuple(int(size) for size in meta.shape)
    contiguous = python if meta.is_contiguous() else f"{python}.contiguous()"
    return call.lowering.argument(f"{name}_in", shape, dtype_of(meta.dtype), contiguous, name)


def _function(node: Node) -> str:
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        raise NotLowered(str(target))
    name, overload = target._schema.name.split("::")[-1], target._schema.overload_name or "default"
    public = not name.startswith("_") and callable(getattr(torch, name, None)) and target.namespace == "aten"
    return f"torch.{name}" if public else f"torch.ops.{target.namespace}.{name}.{overload}"


def _text(argument: FxArgument, call: Call, uses: list[str]) -> str:
    match argument:
        case Node():
            return _operand(argument, call, uses)
        case list() | tuple():
            return f"[{', '.join(_text(item, call, uses) for item in argument)}]"
        case float() if argument != argument or argument in (float("inf"), float("-inf")):
            return f'float("{argument}")'
        case _:
            return repr(argument)


def _operand(node: Node, call: Call, uses: list[str]) -> str:
    value = call.values.get(node)
    if not isinstance(value, Value):
        raise NotLowered(f"argument {node.name} is no single tensor")
    if value.python is None:
        value = call.lowering.store(value, node.name)
        call.values[node] = value
    uses.extend(_origins(value, call))
    return value.python or ""


def _origins(value: Value, call: Call) -> Sequence[str]:
    """Steps whose variable the Python expression of the value starts with."""
    head = (value.python or "").split(".")[0].split("[")[0]
    return [step.name for step in call.lowering.steps if step.name == head]
