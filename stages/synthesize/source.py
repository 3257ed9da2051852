"""Writing a program as a file in KernelBench's form."""

from __future__ import annotations

import re
from collections.abc import Mapping

from schemas.tensor import TensorSpec
from stages.mine.template import drawn_text
from stages.synthesize.program import Input, Program, template_names

SHORT = (("torch.nn.functional.", "F."), ("torch.nn.", "nn."))


def task_source(program: Program, sizes: Mapping[str, int]) -> str:
    """The file; `sizes` gives every label that the program writes out (see `written_labels`)."""
    made = [f"self.{step.result} = {_shorten(step.constructor)}" for step in program.steps if step.constructor]
    applied = [f"{step.result} = {_shorten(step.call)}" for step in program.steps]
    names = [entry.name for entry in program.inputs]
    body = "\n".join((*made, *applied))
    lines = [
        "import torch",
        "import torch.nn as nn",
        *(["import torch.nn.functional as F"] if "F." in body else []),
        "",
        *(f"{label} = {sizes[label]}" for label in written_labels(program)),
        *("", "", "class Model(nn.Module):", f'    """{_title(program)}"""', ""),
        *("    def __init__(self):", "        super().__init__()"),
        *(f"        {line}" for line in made),
        *("", f"    def forward(self, {', '.join(names)}):"),
        *(f"        {line}" for line in applied),
        f"        return {program.result}",
        *("", "", "def get_inputs():"),
        *(f"    {entry.name} = {_drawn(entry)}" for entry in program.inputs),
        f"    return [{', '.join(names)}]",
        *("", "", "def get_init_inputs():", "    return []", ""),
    ]
    return "\n".join(lines)


def written_labels(program: Program) -> tuple[str, ...]:
    """Labels of all sizes that the file names as globals, in order of first use."""
    labels = [dim.label for entry in program.inputs for dim in (*entry.dims, *([entry.bound] if entry.bound else []))]
    for step in program.steps:
        bound = dict(step.bindings)
        labels += [bound[name].label for name in template_names(step.operator)]
    return tuple(label for label in dict.fromkeys(labels) if not label.isdigit())


def task_name(program: Program) -> str:
    """A readable name: what is applied, in order."""
    return "_".join(re.sub(r"(_\d+|_out)+$", "", step.result) for step in program.steps)


def _title(program: Program) -> str:
    return (
        ", ".join(step.operator.name.removeprefix("torch.").removeprefix("nn.functional.") for step in program.steps)
        + "."
    )


def _shorten(text: str) -> str:
    for long, short in SHORT:
        text = text.replace(long, short)
    return text


def _drawn(entry: Input) -> str:
    bound = None if entry.bound is None else entry.bound.label
    example = TensorSpec(shape=(1,), dtype=entry.dtype, domain=entry.domain, bound=None if bound is None else 1)
    return drawn_text(example, [dim.label for dim in entry.dims], bound)
