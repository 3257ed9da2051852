"""Trial runs of a growing program: every step must run, mean something, and tell where its sizes come from.

A handful of runs at tiny sizes go along with a program: one for each family of values, one in float64, and one with
each named size doubled. From the last ones follows which dimension of a result is which.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import torch

from stages.synthesize.draws import FAMILIES, drawer
from stages.synthesize.program import BATCH, ONE, Dim, Input, Program, Step
from stages.synthesize.running import Draw, Modules, State, apply, double_module, feed, filled, module, note_sizes

TINY_BATCH = 6
TINY = (12, 24, 16, 20, 36, 28, 40, 44, 52, 60)
"""Sizes of the other symbols in trial runs, all different and with many divisors, in order of introduction."""
TINY_LIMIT = 1 << 20
"""Most elements of a result in a trial run."""
DOUBLE = "float64"


class Probe(NamedTuple):
    """One trial run."""

    draw: Draw
    modules: Modules
    doubled: str | None
    """The symbol that is twice as large here."""
    state: State


class NoFit(Exception):
    """A step that does not run, or whose result means nothing. Says why."""


@dataclasses.dataclass(frozen=True)
class Bench:
    """A program with its trial runs."""

    program: Program
    probes: Mapping[str, Probe]
    """By family, `float64`, and symbol."""

    @classmethod
    def empty(cls) -> Bench:
        """Trial runs of an empty program."""
        bench = cls(Program(), {})
        probes = {family: bench._started(drawer(family, 0), module, None) for family in FAMILIES}
        probes[DOUBLE] = bench._started(drawer("normal", 0, torch.float64), double_module, None)
        return cls(bench.program, {**probes, BATCH: bench._started(drawer("normal", 0), module, BATCH)})

    def value(self, name: str, family: str = "normal") -> torch.Tensor:
        """A value in the trial run of a family."""
        return self.probes[family].state.values[name]

    def made(self, step: Step) -> str:
        """The expression that makes a step's module in the trial runs; raises `ValueError` for a function."""
        if step.constructor is None:
            raise ValueError(f"{step.operator.name} is a function")
        return filled(step.constructor, self.probes["normal"].state.sizes)

    def with_input(self, entry: Input) -> Bench:
        """The program with one more input."""
        return self._with_program(self.program.with_input(entry))

    def with_symbols(self, labels: tuple[str, ...]) -> Bench:
        """The program with more named sizes."""
        return self._with_program(self.program.with_symbols(labels))

    def extended(self, step: Step) -> Bench:
        """The program with one more step. Raises `NoFit` where it fails in some trial run."""
        self._check_growth(step)
        states = {name: _advanced(probe, self.program, [step]) for name, probe in self.probes.items()}
        results = {name: state.values[step.result] for name, state in states.items()}
        if any(not isinstance(result, torch.Tensor) for result in results.values()):
            raise NoFit("gives no tensor")
        dims = self._dims(step, {name: state.sizes for name, state in states.items()}, results)
        for name, state in states.items():
            note_sizes(dims, results[name], state.sizes)
        probes = {name: probe._replace(state=states[name]) for name, probe in self.probes.items()}
        return Bench(self.program.extended(step, dims), probes)

    def stretched(self, step: Step, factor: float) -> torch.Tensor:
        """The result of a step that was made already, on arguments `factor` times as large."""
        probe = self.probes["normal"]
        values = {name: probe.state.values[name] for name in step.arguments}
        larger = {name: value * factor if value.is_floating_point() else value for name, value in values.items()}
        return apply(step, State(larger, probe.state.sizes), probe.modules)

    def rerun(self, draw: Draw, modules: Modules) -> torch.Tensor:
        """The result of the whole program with other inputs or parameters."""
        probe = self._started(draw, modules, None)
        return _advanced(probe, self.program, self.program.steps).values[self.program.result]

    def _check_growth(self, step: Step) -> None:
        """Raises `NoFit` for a function with a huge result (outer products, diagonals), before it is allocated."""
        if step.constructor is not None:
            return
        probe = self.probes[BATCH]
        hollow = probe._replace(
            draw=lambda *wanted: probe.draw(*wanted).to("meta"),
            state=State({name: value.to("meta") for name, value in probe.state.values.items()}, probe.state.sizes),
        )
        try:
            result = _advanced(hollow, self.program, [step]).values[step.result]
        except NoFit:  # the trial runs on real tensors will tell; not every operator knows the meta device
            return
        if isinstance(result, torch.Tensor) and result.numel() > TINY_LIMIT:
            raise NoFit(f"{step.operator.name} gives {result.numel()} elements")

    def _with_program(self, program: Program) -> Bench:
        probes = {name: probe._replace(state=_sized(probe, program)) for name, probe in self.probes.items()}
        grown = Bench(program, probes)
        for symbol in program.symbols:
            if symbol not in probes:
                probe = grown._started(drawer("normal", 0), module, symbol)
                probes[symbol] = probe._replace(state=_advanced(probe, program, program.steps))
        return Bench(program, probes)

    def _started(self, draw: Draw, modules: Modules, doubled: str | None) -> Probe:
        probe = Probe(draw, modules, doubled, State({}, {}))
        return probe._replace(state=_sized(probe, self.program))

    def _dims(
        self, step: Step, sizes: Mapping[str, Mapping[str, int]], results: Mapping[str, torch.Tensor]
    ) -> tuple[Dim, ...]:
        """Which known dimension each one of a result is: the one whose size it has in every trial run."""
        if len({result.dim() for result in results.values()}) > 1:
            raise NoFit("its rank depends on sizes")
        shapes = self.program.shapes
        near = [dim for argument in step.arguments for dim in shapes[argument]] + [dim for _, dim in step.bindings]
        known = dict.fromkeys([ONE, *near, *(dim for dims in shapes.values() for dim in dims)])
        found = []
        for index in range(results[BATCH].dim()):
            own = {name: result.shape[index] for name, result in results.items()}
            same = (dim for dim in known if all(sizes[name].get(dim.label) == size for name, size in own.items()))
            scales = own[BATCH] != own["normal"]
            found.append(next(same, None) or Dim(f"{step.result}_dim{index}".upper(), scales))
        return tuple(found)


def _sized(probe: Probe, program: Program) -> State:
    """The state with sizes for all symbols of a program."""
    tiny = dict(zip(program.symbols, (TINY_BATCH, *TINY), strict=False))
    if len(tiny) < len(program.symbols):
        raise NoFit("too many sizes")
    if probe.doubled is not None:
        tiny[probe.doubled] *= 2
    return State(dict(probe.state.values), {ONE.label: 1, **tiny, **probe.state.sizes})


def _advanced(probe: Probe, program: Program, steps: tuple[Step, ...] | list[Step]) -> State:
    """The state after more steps; raises `NoFit` where one of them fails."""
    state = State(dict(probe.state.values), dict(probe.state.sizes))
    entries = {entry.name: entry for entry in program.inputs}
    shapes = program.shapes
    for step in steps:
        try:
            for name in step.arguments:
                if name not in state.values:
                    state.values[name] = feed(entries[name], state.sizes, probe.draw)
            result = apply(step, state, probe.modules)
        except Exception as error:  # whatever an operator raises at sizes that it does not take
            raise NoFit(f"{step.operator.name} fails: {type(error).__name__}") from error
        state.values[step.result] = result
        if step.result in shapes:
            note_sizes(shapes[step.result], result, state.sizes)
    return state
