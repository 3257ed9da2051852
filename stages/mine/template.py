"""Source text of a call: the templates of an operator's record and its runnable reference."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence

from schemas.operator import Form
from schemas.tensor import Domain, TensorSpec
from stages.mine.invocation import Address, Arguments, Invocation, TensorLeaf, Tree, Variable

METHODS = "torch.Tensor."


def constructor_text(invocation: Invocation, names: Mapping[Variable, str]) -> str | None:
    """`torch.nn.LayerNorm([{features}])`; null for a function."""
    if invocation.form is not Form.MODULE:
        return None
    return f"{invocation.target}({_arguments(invocation.init, 'init', names, {})})"


def call_text(invocation: Invocation, names: Mapping[Variable, str]) -> str:
    """`torch.softmax({0}, dim=-1)`, `{self}({0})`, `{0}.unfold(-1, 3, 2)`."""
    numbers = {address: index for index, (address, _) in enumerate(invocation.tensors())}
    arguments = invocation.call
    target = "{self}" if invocation.form is Form.MODULE else invocation.target
    text = _arguments(arguments, "call", names, numbers)
    if target.startswith(METHODS):
        _, _, rest = text.partition(", ")
        return f"{{0}}.{target.removeprefix(METHODS)}({rest}){invocation.pick}"
    return f"{target}({text}){invocation.pick}"


def reference_source(
    constructor: str | None,
    call: str,
    dims: Sequence[Sequence[str]],
    specs: Sequence[TensorSpec],
    bounds: Sequence[str | None],
    sizes: Mapping[str, int],
) -> str:
    """A file in KernelBench's form that applies one operator.

    `dims` names the sizes of each input, `bounds` the size that bounds an index input, `sizes` says how large they are.
    """
    known = {
        name: size
        for shape, spec in zip(dims, specs, strict=True)
        for name, size in zip(shape, spec.shape, strict=True)
    }
    known |= {name: sizes[name] for name in _fields(constructor, call)}
    upper = {name: name.upper() for name in known}
    values = [f"x{index}" if index else "x" for index in range(len(specs))]
    drawn = [
        drawn_text(spec, [upper[name] for name in shape], None if bound is None else upper[bound])
        for shape, spec, bound in zip(dims, specs, bounds, strict=True)
    ]
    made = [] if constructor is None else [f"        self.operator = {constructor.format(**upper)}"]
    return "\n".join(
        [
            "import torch", "import torch.nn as nn", "",
            *(f"{upper[name]} = {size}" for name, size in known.items()), "", "",
            "class Model(nn.Module):", "    def __init__(self):", "        super().__init__()", *made, "",
            f"    def forward(self, {', '.join(values)}):",
            f"        return {call.format(*values, self='self.operator', **upper)}", "", "",
            "def get_inputs():", f"    return [{', '.join(drawn)}]", "", "",
            "def get_init_inputs():", "    return []", "",
        ]
    )  # fmt: skip


def drawn_text(spec: TensorSpec, sizes: Sequence[str], bound: str | None = None) -> str:
    """The expression that draws an input from its domain; `sizes` are the expressions of its dimensions."""
    shape = ", ".join(sizes)
    if spec.domain is Domain.INDEX:
        return f"torch.randint(0, {bound or spec.bound}, ({shape}{',' if len(sizes) == 1 else ''}))"
    return {
        Domain.REAL: f"torch.randn({shape})",
        Domain.POSITIVE: f"torch.rand({shape}) + 0.1",
        Domain.UNIT: f"torch.rand({shape}) * 0.98 + 0.01",
        Domain.SYMMETRIC_UNIT: f"torch.rand({shape}) * 1.96 - 0.98",
        Domain.BOOLEAN: f"torch.rand({shape}) < 0.5",
    }[spec.domain]


def _fields(constructor: str | None, call: str) -> list[str]:
    """Names of the sizes that templates refer to."""
    texts = (constructor or "", call)
    fields = [field for text in texts for _, field, _, _ in string.Formatter().parse(text) if field]
    return [field for field in dict.fromkeys(fields) if field != "self" and not field.isdigit()]


def _arguments(arguments: Arguments, part: str, names: Mapping[Variable, str], numbers: Mapping[Address, int]) -> str:
    parts = [_text(tree, (part, index), names, numbers) for index, tree in enumerate(arguments.positional)]
    parts += [f"{key}={_text(tree, (part, key), names, numbers)}" for key, tree in arguments.keyword]
    return ", ".join(parts)


def _text(tree: Tree, address: Address, names: Mapping[Variable, str], numbers: Mapping[Address, int]) -> str:
    if isinstance(tree, TensorLeaf):
        return f"{{{numbers[address]}}}"
    if isinstance(tree, list):
        return "[" + ", ".join(_text(item, (*address, i), names, numbers) for i, item in enumerate(tree)) + "]"
    variable = Variable(address, None)
    return f"{{{names[variable]}}}" if variable in names else repr(tree)
