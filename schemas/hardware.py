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
        "torch_version",
        "compiler",
    )

    hardware_id: str
    kind: Literal["cpu", "cuda"]
    name: str
    """Marketing name as the system reports it."""
    architecture: str
    """Instruction set or compute capability: `x86_64:avx2+fma`, `sm_90`."""
    units: PositiveInt
    """Cores that a kernel may use, or multiprocessors."""
    cache_bytes: PositiveInt
    """Last-level cache in bytes."""
    memory_bytes: PositiveInt
    torch_version: str
    compiler: str
    """Compiler and version: `g++ 12.2.0`."""
    read_bytes_per_second: float = Field(gt=0)
    """Best measured rate of a read-only pass over memory."""
    copy_bytes_per_second: float = Field(gt=0)
    """Best measured rate of a copy, bytes read plus bytes written."""
    flops_per_second: float = Field(gt=0)
    """Best measured rate of an fp32 matrix product, a multiply-add counted as two."""
    launch_seconds: float = Field(gt=0)
    """Cost of one small eager operator."""

    def roofline_seconds(self, flops: int, traffic_bytes: int) -> float:
        """The shortest time in seconds that the measured rates allow for this work (Williams et al. 2009)."""
        rate = max(self.read_bytes_per_second, self.copy_bytes_per_second)
        return max(flops / self.flops_per_second, traffic_bytes / rate)
