"""The judge's word on one candidate on one machine."""

from __future__ import annotations

import enum
from typing import ClassVar, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from schemas.candidate import Language
from schemas.record import Identified, Record
from schemas.timing import Ratio, Timing


class Verdict(enum.StrEnum):
    """What a candidate turned out to be. Faults of the infrastructure are never verdicts."""

    BUILD_FAILED = "build_failed"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    WRONG = "wrong"
    SUSPECT = "suspect"
    CORRECT = "correct"


class KernelUsage(Record):
    """What one device kernel takes, as the assembler reports it."""

    name: str
    """As the linker knows it (mangled, for C++)."""
    registers: PositiveInt
    """Per thread."""
    shared_bytes: NonNegativeInt
    """Static shared memory per block; dynamic memory is asked for at the launch."""
    stack_bytes: NonNegativeInt
    spill_store_bytes: NonNegativeInt
    spill_load_bytes: NonNegativeInt
    """Local memory per thread that registers did not suffice for."""


class Build(Record):
    """What building gave."""

    ok: bool
    language: Language
    route: Literal["slim", "full", "none"]
    """Headers it was built with; `none` where nothing had to be compiled or compiling was not reached."""
    fallback_reason: str | None
    """Why the slim headers would not do; null on the slim route."""
    artefacts: NonNegativeInt
    """Extension modules built."""
    kernels: tuple[KernelUsage, ...] = ()
    """Device kernels in them; empty where the compiler reports none."""
    seconds: float = Field(ge=0)
    """Wall time of the build, pauses left out."""
    diagnostics: str
    """The compiler's or interpreter's message, cut to a readable length; empty where there is none."""


class FamilyErrors(Record):
    """The worst error of one output under one family of inputs, and the budget it was held against."""

    output: NonNegativeInt
    family: str
    calls: PositiveInt
    norm: float | None
    """Worst relative norm; null where no finite error exists (masks of NaN or Inf differ)."""
    element: float | None
    row: float | None
    share_of_budget: float | None
    """Largest of the three errors over its budget: above 1 is wrong."""
    bad_elements: NonNegativeInt
    """Elements outside the element budget, over all calls."""
    elements: PositiveInt
    worst_index: tuple[NonNegativeInt, ...]
    """Where the worst element stands, over the first wrong call or else the worst."""
    worst_got: str
    worst_expected: str
    """Values there as text, so that NaN and infinity survive."""


class Verification(Record):
    """Correctness over secret inputs."""

    calls_planned: PositiveInt
    calls_good: NonNegativeInt
    elements_checked: NonNegativeInt
    elements_good: NonNegativeInt
    errors: tuple[FamilyErrors, ...]
    precision: Literal["fp64", "fp32", "tf32", "half", "exact", "none"]
    """Class of the worst relative norm; `none` where nothing finite was measured."""
    parameters: Literal["state_dict", "seeded", "none"]
    """How weights reached the candidate."""
    message: str
    """The failure in one sentence, a traceback's end included; empty where it passed."""

    @property
    def passed(self) -> bool:
        """Affirmative evidence only: every planned call was checked and good."""
        return self.calls_good == self.calls_planned and self.elements_good == self.elements_checked > 0


class DeviceState(Record):
    """A GPU while it was timed; every figure is null where the driver does not give it."""

    sm_clock_mhz: int | None
    memory_clock_mhz: int | None
    temperature_c: int | None
    power_w: float | None
    energy_j: float | None
    """Energy since the driver was loaded: differences mean something, the value does not."""
    throttled: tuple[str, ...]
    """Why its clocks were lower than they could be: `sw_power_cap`, `hw_thermal_slowdown`, ..."""


class Profile(Record):
    """Times under the same protocol as both baselines, interleaved."""

    candidate: Timing
    eager: Timing
    compiled: Timing | None
    speedup_eager: Ratio
    """Eager time over the candidate's."""
    speedup_compiled: Ratio | None
    roofline_share: float = Field(gt=0)
    """Roofline time over the candidate's time: 1 is as fast as the measured rates allow."""
    rounds: PositiveInt
    calls: PositiveInt
    """Timed calls of the candidate, each checked."""
    cache: Literal["cold", "warm"]
    launch_bound: bool
    """Too short for a speed label on this device."""
    before: DeviceState | None
    after: DeviceState | None
    """The device before the first and after the last round; null where it does not say."""


class Evaluation(Identified):
    """Build, verification and profile of a candidate on one machine, and the verdict they add up to."""

    IDENTITY: ClassVar[tuple[str, ...]] = ("candidate_id", "hardware_id", "judge_version")

    evaluation_id: str
    candidate_id: str
    task_id: str
    hardware_id: str
    judge_version: str
    """Hash of the code that judged."""
    verdict: Verdict
    rule: str | None
    """For a suspect: the rule that fired."""
    message: str
    """The verdict in one sentence, as a policy is told."""
    build: Build
    verification: Verification | None
    profile: Profile | None
    flags: tuple[str, ...]
    """Properties worth knowing that decide nothing: `seeded_parameters`, `full_headers`, ..."""
    confinement: str
    """What was in force while its code ran."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        verified = self.verification is not None and self.verification.passed
        requirements = {
            "a build failure neither runs nor carries times": self.verdict is not Verdict.BUILD_FAILED
            or (not self.build.ok and self.verification is None and self.profile is None),
            "only a build failure has a failed build": self.build.ok or self.verdict is Verdict.BUILD_FAILED,
            "what was profiled was verified": self.profile is None or verified,
            "a correct candidate passed its verification": self.verdict is not Verdict.CORRECT or verified,
            "a wrong answer or a crash carries no times": self.profile is None
            or self.verdict in (Verdict.CORRECT, Verdict.SUSPECT),
            "a suspect, and no other, names its rule": (self.verdict is Verdict.SUSPECT) == (self.rule is not None),
        }
        for sentence, holds in requirements.items():
            if not holds:
                raise ValueError(f"{sentence} (verdict {self.verdict})")
        return self


class Fault(Record):
    """A failure of ours: kept apart, retried by the next run, never taught as a candidate's failure."""

    stage: str
    item_id: str
    """The task or candidate that was being worked on."""
    step: str
    """`build`, `verify`, `profile`, `baseline`, `policy`."""
    kind: Literal["fault_infrastructure", "fault_noise"]
    message: str
    attempts: PositiveInt
