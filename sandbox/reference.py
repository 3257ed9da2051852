"""Loads a task's or an operator's own source: trusted code of ours, never a candidate's."""

from __future__ import annotations

import hashlib
import linecache
from collections.abc import Callable
from typing import NamedTuple, cast

import torch
from torch import nn


class Reference(NamedTuple):
    """What a source in KernelBench's form defines."""

    model_class: type[nn.Module]
    get_inputs: Callable[[], list[torch.Tensor]]
    get_init_inputs: Callable[[], list[object]]

    def build(self) -> nn.Module:
        """A new `Model` in evaluation mode; parameters are drawn from torch's global generator."""
        return self.model_class(*self.get_init_inputs()).eval()

    def construct(self, seed: int) -> nn.Module:
        """The same, right after seeding torch's global generator with `seed`."""
        torch.manual_seed(seed)
        return self.build()


def load_task_source(source: str) -> Reference:
    """Execute a reference source in a namespace of its own.

    The text is registered with `linecache`, so tracebacks and `torch.compile` show its lines. Raises `ValueError`
    if the source does not define all of `Model`, `get_inputs` and `get_init_inputs`, and whatever it raises itself.
    """
    filename = f"<task {hashlib.sha256(source.encode()).hexdigest()[:12]}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace: dict[str, object] = {"__name__": "kernelquarry_task", "__file__": filename}
    exec(compile(source, filename, "exec"), namespace)  # noqa: S102  (a source that this project composed)
    missing = [name for name in ("Model", "get_inputs", "get_init_inputs") if name not in namespace]
    if missing:
        raise ValueError(f"{filename} does not define {', '.join(missing)}")
    return Reference(
        cast(type[nn.Module], namespace["Model"]),
        cast(Callable[[], list[torch.Tensor]], namespace["get_inputs"]),
        cast(Callable[[], list[object]], namespace["get_init_inputs"]),
    )
