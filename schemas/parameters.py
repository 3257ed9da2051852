"""Everything a user may set in `params.yaml`, validated before any work starts."""

from __future__ import annotations

from typing import Annotated, Generic, Literal, Self, TypeAlias, TypeVar

from pydantic import AfterValidator, Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from schemas.record import Record

T = TypeVar("T")


def _ordered(window: tuple[float, float]) -> tuple[float, float]:
    if not 0 < window[0] <= window[1]:
        raise ValueError("needs 0 < first <= second")
    return window


Window: TypeAlias = Annotated[tuple[float, float], AfterValidator(_ordered)]
"""Least and most."""


class ByDevice(Record, Generic[T]):
    """A value for each kind of device: what is quick on one is hours on another."""

    cpu: T
    cuda: T

    def on(self, kind: Literal["cpu", "cuda"]) -> T:
        """The value for a kind of device."""
        return self.cpu if kind == "cpu" else self.cuda


class MineParameters(Record):
    """Which operators to look for."""

    libraries: tuple[Literal["torch"], ...] = ("torch",)
    limit: PositiveInt | None = None
    """At most this many operators are kept; null keeps all."""


class SynthesizeParameters(Record):
    """How many tasks to compose, and how large."""

    seed: NonNegativeInt = 0
    tasks: PositiveInt = 26
    operators: tuple[PositiveInt, PositiveInt] = (1, 5)
    """Fewest and most operators in a task."""
    eager_ms: ByDevice[Window] = ByDevice(cpu=(1.1, 2.2), cuda=(0.15, 0.6))
    """Work window: expected eager time in milliseconds, drawn log-uniformly."""
    max_tensor_mb: ByDevice[PositiveInt] = ByDevice(cpu=32, cuda=256)
    """Largest single tensor in MiB."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.operators[0] > self.operators[1]:
            raise ValueError("operators: the first number must not exceed the second")
        return self


class JudgeParameters(Record):
    """How hard every candidate is looked at. Part of every verdict's key."""

    families: tuple[str, ...] = ("normal", "uniform", "offset", "heavy_tail", "spikes", "constant_rows")
    verify_calls: PositiveInt = 12
    """Checked calls of a verification, spread over the families."""
    rounds: ByDevice[PositiveInt] = ByDevice(cpu=6, cuda=8)
    """ABBA rounds of a profile."""
    block_ms: ByDevice[PositiveFloat] = ByDevice(cpu=5.0, cuda=10.0)
    """Shortest block in milliseconds."""
    target_half_width: ByDevice[PositiveFloat] = ByDevice(cpu=0.06, cuda=0.005)
    """Rounds end before their number once the speed-up over eager is known this well."""
    max_half_width: float = Field(default=0.3, gt=0)
    """An interval whose half is wider than this share says that the machine, not the candidate, was measured."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    tolerance_factor: float = Field(default=3.0, gt=1, le=10)
    """A candidate may be this many times worse than the eager reference against float64."""
    floor_ulps: float = Field(default=4.0, gt=0)
    """Budgets never fall below this many units in the last place at the output's scale."""
    build_deadline_s: float = Field(default=120.0, gt=0)
    run_deadline_s: float = Field(default=20.0, gt=0)
    memory_mb: PositiveInt = 8192
    """Memory of one candidate's process."""


class FilterParameters(Record):
    """What a task must withstand to be accepted."""

    eager_ms: ByDevice[Window] = ByDevice(cpu=(1.0, 100.0), cuda=(0.05, 100.0))
    """Measured eager time must fall inside this window."""
    margin: float = Field(default=10.0, gt=1)
    """Smallest error of a null candidate over the budget."""
    draws: PositiveInt = 2
    """Draws per input family that calibrate the tolerance."""


class PolicyParameters(Record):
    """One policy and how often it plays each task."""

    name: Literal["schedule", "fault"]
    episodes: PositiveInt = 1


class RolloutParameters(Record):
    """Which policies write candidates, and for how long."""

    seed: NonNegativeInt = 0
    policies: tuple[PolicyParameters, ...] = (
        PolicyParameters(name="schedule", episodes=2),
        PolicyParameters(name="fault", episodes=2),
    )
    turns: PositiveInt = 3
    """Most submissions of one episode."""
    in_flight: PositiveInt = 2
    """Tasks whose episodes run at the same time."""
    retries: NonNegativeInt = 2
    """How often a fault of ours is retried before the episode is given up."""


class LabelParameters(Record):
    """The reward rule and its discount."""

    reward: Literal["milestone"] = "milestone"
    min_effect: float = Field(default=0.05, ge=0, lt=1)
    """Share of time that must be saved before "faster" is said (CUDA Agent: 5 %)."""
    gamma: float = Field(default=1.0, gt=0, le=1)


class ExportParameters(Record):
    """Splits and size limits of the datasets."""

    seed: NonNegativeInt = 0
    test_share: float = Field(default=0.1, gt=0, lt=1)
    """Share of task groups that go to the test split."""
    max_chars: PositiveInt = 400_000
    """Rows longer than this are counted and left out of the training views."""


class Parameters(Record):
    """The whole of `params.yaml`."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """`auto` takes a GPU where there is one."""
    mine: MineParameters = MineParameters()
    synthesize: SynthesizeParameters = SynthesizeParameters()
    judge: JudgeParameters = JudgeParameters()
    filter: FilterParameters = FilterParameters()
    rollout: RolloutParameters = RolloutParameters()
    label: LabelParameters = LabelParameters()
    export: ExportParameters = ExportParameters()
