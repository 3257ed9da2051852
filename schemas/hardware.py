"""The machine that a label belongs to."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, PositiveInt

from schemas.record import Identified


class Hardware(Identified):
    """A device with the software that decides its speed, and its measured peak rates."""

    IDENTITY: ClassVar[tuple[str, ...]] = (
        "kind",
        "name",
        "architecture",
        "units",
        "cache_bytes",
        "cores",
        "torch_version",
        "compiler",
        "driver_version",
    )

    hardware_id: str
    kind: Literal["cpu", "cuda"]
    name: str
    """Marketing name as the system reports it."""
    architecture: str
    """Instruction set or compute capability: `x86_64:avx2+fma`, `sm_90`."""
    units: PositiveInt
    """Cores that a kernel may use, or multiprocessors."""
    cores: PositiveInt
    """CPU cores of the host that the pipeline may use; on a CPU the same as `units`."""
    cache_bytes: PositiveInt
    """Last-level cache in bytes."""
    memory_bytes: PositiveInt
    torch_version: str
    compiler: str
    """Compiler and version: `g++ 12.2.0`, `nvcc 13.0.88`."""
    driver_version: str | None
    """Version of the GPU's driver; null on a CPU."""
    read_bytes_per_second: float = Field(gt=0)
    """Best measured rate of a read-only pass over memory."""
    copy_bytes_per_second: float = Field(gt=0)
    """Best measured rate of a copy, bytes read plus bytes written."""
    flops_per_second: float = Field(gt=0)
    """Best measured rate of an fp32 matrix product, a multiply-add counted as two."""
    tensor_flops_per_second: float | None = Field(default=None, gt=0)
    """The same in bfloat16 on a GPU's matrix units; null on a CPU."""
    launch_seconds: float = Field(gt=0)
    """Cost of one small eager operator."""

    def roofline_seconds(self, flops: int, traffic_bytes: int) -> float:
        """The shortest time in seconds that the measured rates allow for this work (Williams et al. 2009).

        Arithmetic counts at the best rate of any precision: a bound must hold for whatever a kernel chooses.
        """
        rate = max(self.read_bytes_per_second, self.copy_bytes_per_second)
        arithmetic = max(self.flops_per_second, self.tensor_flops_per_second or 0.0)
        return max(flops / arithmetic, traffic_bytes / rate)
