"""Drawing a program: operators one after the other, joined to values that are there by their named dimensions."""

from __future__ import annotations

import builtins
import keyword
import random
import re
from typing import NamedTuple

from schemas.operator import Argument, Family, Operator
from schemas.tensor import Domain, Dtype
from stages.synthesize.catalogue import Catalogue, Entry
from stages.synthesize.draws import FAMILIES
from stages.synthesize.merits import check_step, check_whole
from stages.synthesize.probes import Bench, NoFit
from stages.synthesize.program import BATCH, Dim, Input, Step, template_names
from stages.synthesize.unify import NOTHING, STAR, Bindings, batch_name, expected, unify

ATTEMPTS = 16
"""Operators tried for one step."""
REUSE = 0.6
"""How often a further argument is a value that is there already, where one fits: a residual or shared join."""
BRANCH = 0.15
"""How often a step starts from a value that was used before, to be joined later."""
JOIN = 0.12
"""How often an operator that joins two values is asked for, on top of those that come by themselves ..."""
JOIN_WAITING = 0.5
"""... and how often while two values wait for it."""
MAX_INPUTS = 4
HEAVY = (Family.MATMUL, Family.CONVOLUTION)
CLOSING = (Family.LOSS,)
LEADING = {0: [("FEATURES",), ("LENGTH", "FEATURES"), ("CHANNELS", "HEIGHT", "WIDTH")], 1: [(), ("LENGTH",)]}
"""What may stand between the batch and as many named dimensions of the first argument."""
ROLES = {Domain.INDEX: "index", Domain.BOOLEAN: "mask"}
FREE_NAMES = ("x", "y", "z", "w")
WEIGHT_NAMES = ("weight", "bias", "scale", "shift")


class _Choice(NamedTuple):
    """A value or input chosen for an argument."""

    bench: Bench
    name: str
    bindings: Bindings


def compose(rng: random.Random, catalogue: Catalogue, count: int) -> Bench:
    """A program of `count` operators with its trial runs. Raises `NoFit` where this draw leads nowhere."""
    bench = Bench.empty()
    for done in range(count):
        bench = _step(rng, catalogue, bench, count - done)
    if len(bench.program.dangling) != 1:
        raise NoFit("a value is left over")
    check_whole(bench)
    return bench


def _step(rng: random.Random, catalogue: Catalogue, bench: Bench, remaining: int) -> Bench:
    """The program with one more operator."""
    for _ in range(ATTEMPTS):
        entry = _draw(rng, catalogue, bench, remaining)
        if entry is None:
            break
        try:
            return _applied(rng, bench, entry, remaining)
        except NoFit:
            continue
    raise NoFit("no operator fits")


def _draw(rng: random.Random, catalogue: Catalogue, bench: Bench, remaining: int) -> Entry | None:
    steps = bench.program.steps
    waiting = len(bench.program.dangling) > 1
    if (waiting and remaining == 1) or (steps and rng.random() < (JOIN_WAITING if waiting else JOIN)):
        return catalogue.draw_join(rng)
    used = {step.operator.family for step in steps}
    barred = {*(HEAVY if used & set(HEAVY) else ()), *(CLOSING if remaining > 1 else ())}
    return catalogue.draw(rng, [family for family in Family if family not in barred])


def _applied(rng: random.Random, bench: Bench, entry: Entry, remaining: int) -> Bench:
    operator = entry.operator
    program = bench.program
    if program.steps and (entry.jumps or operator.name == program.steps[-1].operator.name):
        raise NoFit("may only come first, or comes twice")
    first = _opened(rng, bench, operator) if not program.steps else _primary(rng, bench, operator, remaining)
    grown, arguments, bindings = first.bench, [first.name], first.bindings
    for argument in operator.arguments[1:]:
        choice = _secondary(rng, grown, operator, argument, bindings, arguments)
        grown, bindings = choice.bench, choice.bindings
        arguments.append(choice.name)
    grown, bindings = _with_free_sizes(grown, operator, bindings)
    result = _result_name(operator, [name for name, _ in grown.program.dims])
    step = Step(operator, tuple(bindings.names.items()), tuple(arguments), result)
    grown = grown.extended(step)
    _check_shape(grown, step, remaining)
    check_step(grown, step)
    if len(grown.program.dangling) > remaining:
        raise NoFit("leaves more values than can be joined")
    return grown


def _opened(rng: random.Random, bench: Bench, operator: Operator) -> _Choice:
    """The first input: the batch, what the operator names, and some dimensions between."""
    argument = operator.arguments[0]
    starred = argument.dims[:1] == (STAR,)
    core = argument.dims[1:] if starred else argument.dims
    labels = [BATCH]
    if starred:
        labels += rng.choice(LEADING.get(len(core), [()]))
    elif batch_name(operator) is None:
        raise NoFit("no dimension can be the batch")
    for name in core if starred else core[1:]:
        labels.append(_unused(name.upper(), set(labels)))
    dims = tuple(Dim(label, scales=label == BATCH) for label in labels)
    return _with_input(bench, operator, 0, dims, NOTHING)


def _primary(rng: random.Random, bench: Bench, operator: Operator, remaining: int) -> _Choice:
    """The value that the operator works on: the last that nothing used, now and then an older one."""
    program = bench.program
    name = program.dangling[-1]
    older = [value for value, _ in program.dims if value not in program.dangling and _is_float(bench, value)]
    if older and remaining > 2 and len(program.dangling) == 1 and rng.random() < BRANCH:
        name = rng.choice(older)
    return _on_value(bench, operator, operator.arguments[0], name, NOTHING)


def _secondary(
    rng: random.Random, bench: Bench, operator: Operator, argument: Argument, bindings: Bindings, taken: list[str]
) -> _Choice:
    """A further argument: a value that is waiting for a join, another one that fits, or a new input."""
    fitting = []
    for name, _ in bench.program.dims:
        try:
            fitting += [] if name in taken else [_on_value(bench, operator, argument, name, bindings)]
        except NoFit:
            continue
    waiting = [choice for choice in fitting if choice.name in bench.program.dangling]
    if waiting:
        return waiting[-1]
    wanted = expected(argument, bindings)
    weighty = any(isinstance(dim, Dim) and dim.scales for dim in wanted)
    if fitting and weighty and operator.family is not Family.LOSS and rng.random() < REUSE:
        return rng.choice(fitting)
    labels = {name: _fresh_label(bench, name) for name in wanted if isinstance(name, str)}
    dims = tuple(Dim(labels[dim], scales=False) if isinstance(dim, str) else dim for dim in wanted)
    return _with_input(bench, operator, operator.arguments.index(argument), dims, bindings)


def _on_value(bench: Bench, operator: Operator, argument: Argument, name: str, bindings: Bindings) -> _Choice:
    """An argument that is a value of the program."""
    if argument.dtype is not Dtype.FLOAT32 or not _is_float(bench, name):
        raise NoFit("element types differ")
    found = unify(operator, argument, bench.program.shapes[name], bindings)
    if found is None or not _lies_in(bench, name, argument.domain):
        raise NoFit("does not unify")
    return _Choice(bench, name, found)


def _with_input(bench: Bench, operator: Operator, index: int, dims: tuple[Dim, ...], bindings: Bindings) -> _Choice:
    """An argument that is a new input."""
    argument = operator.arguments[index]
    if len(bench.program.inputs) == MAX_INPUTS or any(dim.scales and dim.label != BATCH for dim in dims):
        raise NoFit("no room for another input")
    found = unify(operator, argument, dims, bindings)
    if found is None:
        raise NoFit("does not unify")
    bound = None
    if argument.bound_dim is not None:
        bound = found.names.setdefault(argument.bound_dim, Dim(_fresh_label(bench, argument.bound_dim), scales=False))
        if bound.scales:
            raise NoFit("points into the batch")
    name = _input_name(bench, operator, argument, dims)
    entry = Input(name, dims, argument.dtype, argument.domain, bound)
    return _Choice(bench.with_input(entry), name, found)


def _with_free_sizes(bench: Bench, operator: Operator, bindings: Bindings) -> tuple[Bench, Bindings]:
    """Sizes that only the constructor names, like `out_features`."""
    free = [name for name in template_names(operator) if name not in bindings.names]
    labels = {name: _fresh_label(bench, name) for name in free}
    names = {**bindings.names, **{name: Dim(label, scales=False) for name, label in labels.items()}}
    return bench.with_symbols(tuple(labels.values())), Bindings(names, bindings.leading)


def _check_shape(bench: Bench, step: Step, remaining: int) -> None:
    """The batch must live on, except in the last result."""
    dims = bench.program.shapes[step.result]
    if remaining > 1 and not any(dim.scales for dim in dims):
        raise NoFit("reduces the batch before the end")
    if len(dims) > 4:
        raise NoFit("too many dimensions")


def _lies_in(bench: Bench, name: str, domain: Domain) -> bool:
    """Whether a value stays in a domain under all families of inputs."""
    if domain is Domain.REAL:
        return True
    ranges = {
        Domain.POSITIVE: (1e-6, float("inf")),
        Domain.UNIT: (1e-6, 1 - 1e-6),
        Domain.SYMMETRIC_UNIT: (-0.999, 0.999),
    }
    low, high = ranges[domain]
    values = [bench.value(name, family) for family in FAMILIES]
    return all(float(value.min()) > low and float(value.max()) < high for value in values)


def _is_float(bench: Bench, name: str) -> bool:
    return all(entry.name != name or entry.dtype is Dtype.FLOAT32 for entry in bench.program.inputs)


def _fresh_label(bench: Bench, name: str) -> str:
    taken = {dim.label for _, dims in bench.program.dims for dim in dims} | set(bench.program.symbols)
    return _unused(name.upper(), taken)


def _result_name(operator: Operator, taken: list[str]) -> str:
    """`LayerNorm` as `layer_norm`, `ReLU6` as `relu6`, and `abs` as `abs_out`: a result must not hide a builtin."""
    name = re.sub(
        r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[A-Z]{2})(?=[A-Z][a-z])", "_", operator.name.rpartition(".")[2]
    ).lower()
    return _unused(f"{name}_out" if hasattr(builtins, name) or keyword.iskeyword(name) else name, set(taken))


def _input_name(bench: Bench, operator: Operator, argument: Argument, dims: tuple[Dim, ...]) -> str:
    taken = {name for name, _ in bench.program.dims}
    names: tuple[str, ...] = FREE_NAMES
    if argument.domain in ROLES:
        names = (ROLES[argument.domain],)
    elif taken and not any(dim.scales for dim in dims):
        names = WEIGHT_NAMES
    elif taken and operator.family is Family.LOSS:
        names = ("target",)
    return next((name for name in names if name not in taken), None) or _unused(names[0], taken)


def _unused(name: str, taken: set[str]) -> str:
    return next(n for n in (name, *(f"{name}_{i}" for i in range(2, 99))) if n not in taken)
