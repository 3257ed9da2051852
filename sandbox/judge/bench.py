"""Everything about one task that the judge keeps private and reuses for all of the task's candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from pydantic import JsonValue

from sandbox.channel import MAX_CALLS, Parameters
from sandbox.device import Device
from sandbox.device.memory import HostRegion
from sandbox.errors import SandboxFault
from sandbox.judge.contents import FAMILIES, Source
from sandbox.judge.rounding import Rounding
from sandbox.judge.runner_host import RunnerEnded, RunnerHost
from sandbox.judge.standby import Standby
from sandbox.judge.truth import Errors, Truth
from sandbox.limits import limits_on
from sandbox.reference import load_task_source
from sandbox.runner import CONSTRUCTION_SEED
from sandbox.servers import Servers
from sandbox.slots import Weights, slot_layout
from schemas.hardware import Hardware
from schemas.parameters import JudgeParameters
from schemas.task import Task

POOL_SHARE = 1 / 32
"""Share of the device's memory for the contents and truths that a bench keeps of one family. Past it contents are
drawn anew for every runner, which costs more than running the task."""
MIN_FLUSH = 1 << 20
TIMED_SLACK = 2.0
"""A right output and eager's are each within the tolerance of the truth, so within twice of one another."""
COMPILE_SECONDS = 300.0
BASELINE_MEMORY = 32 << 30


class Content(NamedTuple):
    """The inputs of one call and what the outputs should be."""

    family: str
    inputs: tuple[torch.Tensor, ...]
    truths: tuple[Truth, ...]
    yardstick: tuple[Errors, ...]
    """The eager reference's own errors on these inputs, output by output."""
    slack: float = 1.0
    """By how much the tolerance is widened: where the truth is only eager's own output, that has its error too."""
    exactly: Callable[[], Content] | None = None
    """The same with float64 truths, to settle doubts; null where the truths are."""


class Bench:
    """One task on this machine: reference, weights, contents with truths, and the baselines' runners."""

    def __init__(
        self,
        task: Task,
        parameters: JudgeParameters,
        *,
        servers: Servers,
        hardware: Hardware,
        device: Device,
        source: Source | None = None,
    ) -> None:
        """Open the bench on the device at hand.

        Raises `ValueError` where the task's source does not run in float64.
        """
        self.task = task
        self.parameters = parameters
        self.device = device
        self.source = source or Source(device=device.place)
        self._servers, self._threads = servers, hardware.cores
        self._reference = load_task_source(task.source)
        with torch.no_grad():
            self._plain = self._reference.construct(CONSTRUCTION_SEED).to(device.place)
            self._exact = self._reference.construct(CONSTRUCTION_SEED).to(device.place).double()
            self.seeded = {name: value.clone() for name, value in self._plain.state_dict().items()}
            self.redrawn = self.source.redraw(self.seeded)
        self.weights = Weights.of(self.seeded)
        self.weight_region = HostRegion.create(self.weights.nbytes)
        for field, value in zip(self.weights.fields, self.redrawn.values(), strict=True):
            self.weight_region.tensor(field).copy_(value)
        per_slot = slot_layout(task.inputs, task.outputs, 1).slot_bytes
        self.slots = max(1, min(device.most_slots, MAX_CALLS, device.slot_budget() // per_slot))
        flushed = max(MIN_FLUSH, 2 * hardware.cache_bytes) // 4
        self.flush = torch.zeros(flushed, dtype=torch.int32, device=device.place)
        truth_bytes = 3 * task.output_bytes  # head, rest and inverse scale of every element
        budget = POOL_SHARE * hardware.memory_bytes
        self._capacity = max(1, int(budget / (task.input_bytes + truth_bytes)))
        self._rounding: Rounding | None = None
        self._pools: dict[tuple[bool, str], list[Content]] = {}
        self._hosts: dict[str, RunnerHost] = {}

    def close(self) -> None:
        """End the baselines' runners and let all memory go."""
        for host in self._hosts.values():
            host.close()
        self._hosts.clear()
        self._pools.clear()
        self.weight_region.close()

    def contents(
        self, family: str, count: int, start: int = 0, *, mode: Parameters = Parameters.STATE_DICT
    ) -> list[Content]:
        """Contents `start` … `start + count` of a family, with float64 truths, drawn when first asked for.

        A runner that is given each of them once never sees one again; the next runner starts from zero.
        """
        return self._from_pool((mode is Parameters.SEEDED, family), count, start, lambda: self._draw(family, mode))

    def timed_contents(
        self, family: str, count: int, start: int = 0, *, mode: Parameters = Parameters.STATE_DICT
    ) -> list[Content]:
        """The same for timed calls, of which there are many: held against eager's output at `TIMED_SLACK`.

        Float64 costs ten times what the task does; verification has already held the candidate against it.
        """
        key = (mode is Parameters.SEEDED, f"timed {family}")
        return self._from_pool(key, count, start, lambda: self._draw_timed(family, mode))

    def _from_pool(self, key: tuple[bool, str], count: int, start: int, draw: Callable[[], Content]) -> list[Content]:
        pool = self._pools.setdefault(key, [])
        while len(pool) < min(start + count, self._capacity):
            pool.append(draw())
        kept = pool[start : start + count]
        return kept + [draw() for _ in range(count - len(kept))]

    def _draw(self, family: str, mode: Parameters) -> Content:
        return self._with_truth(family, tuple(self.source.draw(spec, family) for spec in self.task.inputs), mode)

    def _with_truth(self, family: str, inputs: tuple[torch.Tensor, ...], mode: Parameters) -> Content:
        truths = self.truth(inputs, mode=mode)
        outputs = self.eager(inputs, state=self._state(mode))
        return Content(family, inputs, truths, tuple(t.errors(out) for t, out in zip(truths, outputs, strict=True)))

    def _draw_timed(self, family: str, mode: Parameters) -> Content:
        inputs = tuple(self.source.draw(spec, family) for spec in self.task.inputs)
        truths = tuple(Truth(out, out.dtype) for out in self.eager(inputs, state=self._state(mode)))
        nothing = tuple(Errors(0.0, 0.0, 0.0) for _ in truths)
        return Content(
            family, inputs, truths, nothing, TIMED_SLACK, exactly=lambda: self._with_truth(family, inputs, mode)
        )

    def truth(self, inputs: Sequence[torch.Tensor], *, mode: Parameters = Parameters.STATE_DICT) -> tuple[Truth, ...]:
        """The truths of all outputs for these inputs."""
        values = self.exact(inputs, mode=mode)
        dtypes = [getattr(torch, spec.dtype.value) for spec in self.task.outputs]
        return tuple(Truth(value, dtype) for value, dtype in zip(values, dtypes, strict=True))

    def conditioning(self, content: Content) -> list[Errors]:
        """How far the truths move when every input moves by up to half a unit in its last place."""
        return _distances(content, self.exact([self.source.nudge(value) for value in content.inputs]))

    def rounding(self, content: Content) -> list[Errors]:
        """How far the truths move when every step rounds otherwise; no distance where the steps cannot be told."""
        wide = [value.double() if value.is_floating_point() else value for value in content.inputs]
        self._exact.load_state_dict(self.redrawn)
        with torch.no_grad():
            try:
                self._rounding = self._rounding or Rounding(lambda *x: as_tuple(self._exact(*x)), wide, self.source)
                return _distances(content, self._rounding.run(wide))
            except (RuntimeError, NotImplementedError, TypeError, ValueError):
                return [Errors(0.0, 0.0, 0.0) for _ in content.truths]

    def exact(
        self, inputs: Sequence[torch.Tensor], *, mode: Parameters = Parameters.STATE_DICT
    ) -> tuple[torch.Tensor, ...]:
        """The float64 outputs of the reference."""
        with torch.no_grad():
            self._exact.load_state_dict(self._state(mode))
            wide = [value.double() if value.is_floating_point() else value for value in inputs]
            return as_tuple(self._exact(*wide))

    def eager(
        self, inputs: Sequence[torch.Tensor], state: dict[str, torch.Tensor] | None = None
    ) -> tuple[torch.Tensor, ...]:
        """The reference in its own precision, in this process, with the judge's weights or other ones."""
        with torch.no_grad():
            self._plain.load_state_dict(self.redrawn if state is None else state)
            return as_tuple(self._plain(*inputs))

    def without(self, name: str) -> dict[str, torch.Tensor]:
        """The judge's weights but for one, which is as a kernel that forgot it would have it.

        That is as it was constructed if it was constant (a zero bias, a unit gain), else zero.
        """
        value = self.seeded[name]
        constant = value.numel() > 1 and bool((value == value.flatten()[0]).all())
        return {**self.redrawn, name: value if constant else torch.zeros_like(value)}

    def _state(self, mode: Parameters) -> dict[str, torch.Tensor]:
        return self.seeded if mode is Parameters.SEEDED else self.redrawn

    def candidate(self, runner: Standby, payload: dict[str, JsonValue]) -> RunnerHost:
        """Have a runner load a candidate. Raises `RunnerEnded`, its own doing."""
        init_inputs: JsonValue = self._reference.get_init_inputs()  # type: ignore[assignment]
        payload = {**payload, "role": "candidate", "init_inputs": init_inputs}
        return self._open(runner, payload, self.parameters.run_deadline_s)

    def baseline(self, role: Literal["eager", "again", "compiled"]) -> RunnerHost:
        """The runner of a baseline, kept open; `again` is a second eager one, for the noise floor.

        Raises `SandboxFault`: a baseline that does not run is no candidate's doing.
        """
        if role not in self._hosts:
            payload: dict[str, JsonValue] = {
                "role": "compiled" if role == "compiled" else "eager",
                "source": self.task.source,
            }
            limits = limits_on(self.device.kind, BASELINE_MEMORY)
            runner = Standby(self._servers.trusted, self.device, threads=self._threads, limits=limits)
            try:
                host = self._open(runner, payload, COMPILE_SECONDS)
                if role == "compiled":
                    contents = [content.inputs for content in self.contents("normal", 1)]
                    host.block(contents, COMPILE_SECONDS, self.flush)
            except RunnerEnded as error:
                raise SandboxFault(
                    f"the {role} baseline of task {self.task.task_id} {error.how}: {error.log}"
                ) from None
            self._hosts[role] = host
        return self._hosts[role]

    def _open(self, runner: Standby, payload: dict[str, JsonValue], deadline_s: float) -> RunnerHost:
        layout = slot_layout(self.task.inputs, self.task.outputs, self.slots)
        host = RunnerHost(layout, self.weight_region, self.source, self.device)
        try:
            host.start(runner, payload, self.weights, deadline_s=deadline_s)
        except BaseException:
            host.close()
            raise
        return host


def _distances(content: Content, outputs: Sequence[torch.Tensor]) -> list[Errors]:
    return [truth.errors(out.to(truth.dtype)) for truth, out in zip(content.truths, outputs, strict=True)]


def as_tuple(result: object) -> tuple[torch.Tensor, ...]:
    """A model's result as a tuple of tensors."""
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)  # type: ignore[return-value]


__all__ = ["FAMILIES", "Bench", "Content", "as_tuple"]
