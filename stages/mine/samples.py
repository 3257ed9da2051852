"""How torch's own tests call its operators, and plain calls of modules that need no arguments."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, cast

import torch
from torch import nn

from schemas.operator import Form
from stages.mine.execution import resolve
from stages.mine.invocation import Invocation, Unprintable, as_arguments

SAMPLES = 20
"""Samples looked at for one entry of torch's test data; the later ones repeat the first at other ranks."""

Samples = Callable[[], Iterator[Invocation]]


class Sampled(NamedTuple):
    """A name that some test data can call."""

    name: str
    form: Form
    samples: Samples
    aliases: tuple[str, ...]
    """Other public names of it that the test data knows."""


class _Call(Protocol):
    """Positional and keyword arguments, as both kinds of test data hold them."""

    args: Sequence[object]
    kwargs: Mapping[str, object]


class _OpInfo(Protocol):
    """What is used of an entry of `op_db`, whose own type is not public."""

    name: str
    op: Callable[..., object]
    aliases: Sequence[_OpInfo]

    def supported_dtypes(self, device_type: str) -> set[torch.dtype]: ...

    def sample_inputs(self, device: str, dtype: torch.dtype, *, requires_grad: bool) -> Iterator[_Call]: ...


class _ModuleInfo(Protocol):
    """The same for `module_db`."""

    module_cls: type[nn.Module]
    module_inputs_func: Callable[..., Iterator[object]]


def functions() -> Iterator[Sampled]:
    """The functions that OpInfo knows and that take float32 on a CPU."""
    from torch.testing._internal.common_methods_invocations import op_db  # slow to import, and only mining needs it

    for info in cast(Sequence[_OpInfo], op_db):
        name = public_name(info.name)
        if name is not None and torch.float32 in info.supported_dtypes("cpu"):
            aliases = tuple(filter(None, (public_name(alias.name) for alias in info.aliases)))
            yield Sampled(name, Form.FUNCTION, functools.partial(_function_calls, name, info), aliases)


def modules() -> Iterator[Sampled]:
    """The modules of `torch.nn` that `module_db` knows."""
    from torch.testing._internal.common_modules import module_db

    for info in cast(Sequence[_ModuleInfo], module_db):
        name = info.module_cls.__name__
        if getattr(nn, name, None) is info.module_cls:
            yield Sampled(f"torch.nn.{name}", Form.MODULE, functools.partial(_module_calls, name, info), ())


def bare_modules() -> Iterator[Sampled]:
    """All other modules: with plain calls where they can be made without arguments, else with none."""
    for name, cls in vars(nn).items():
        if isinstance(cls, type) and issubclass(cls, nn.Module):
            yield Sampled(f"torch.nn.{name}", Form.MODULE, functools.partial(_bare_calls, name, cls), ())


def public_name(name: str) -> str | None:
    """The dotted path under which users call an OpInfo name; null for operators of torch's inside."""
    hidden = any(part.startswith("_") for part in name.split(".")) or name.startswith("ops.")
    for path in (f"torch.{name}", f"torch.Tensor.{name}"):
        try:
            found: object = resolve(path)
        except AttributeError:
            continue
        return path if callable(found) and not hidden else None
    return None


def _function_calls(name: str, info: _OpInfo) -> Iterator[Invocation]:
    bound = info.op.keywords if isinstance(info.op, functools.partial) else {}
    for sample in itertools.islice(info.sample_inputs("cpu", torch.float32, requires_grad=False), SAMPLES):
        try:
            first = getattr(sample, "input")  # noqa: B009 (a field of OpInfo's samples only)
            call = as_arguments((first, *sample.args), {**bound, **sample.kwargs})
        except Unprintable:
            continue
        yield Invocation(name, Form.FUNCTION, call)


def _module_calls(name: str, info: _ModuleInfo) -> Iterator[Invocation]:
    samples = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=False)
    for sample in itertools.islice(samples, SAMPLES):
        made = cast(_Call, getattr(sample, "constructor_input", None))
        fed = cast(_Call | None, getattr(sample, "forward_input", None))
        if fed is None:
            continue
        keywords = {key: value for key, value in made.kwargs.items() if key not in ("device", "dtype")}
        try:
            init, call = as_arguments(made.args, keywords), as_arguments(fed.args, fed.kwargs)
        except Unprintable:
            continue
        yield Invocation(f"torch.nn.{name}", Form.MODULE, call, init)


def _bare_calls(name: str, cls: type[nn.Module]) -> Iterator[Invocation]:
    """Equal inputs of rank 2 and 4."""
    forward = list(inspect.signature(cls.forward).parameters.values())[1:]
    needed = [p for p in forward if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    made = inspect.signature(cls).parameters.values()
    if needed and all(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in made):
        for shape in ((4, 6), (2, 4, 6, 6)):
            yield Invocation(f"torch.nn.{name}", Form.MODULE, as_arguments([torch.empty(shape)] * len(needed), {}))
