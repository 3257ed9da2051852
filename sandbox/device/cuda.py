"""An NVIDIA GPU as the device."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Literal

import torch

from sandbox.device.base import Device, Identity, best_seconds
from sandbox.device.cpu import cores
from sandbox.device.cuda_memory import CudaError, CudaRegion, checked
from sandbox.device.memory import Region
from sandbox.device.nvml import Nvml, nvml
from sandbox.device.toolkit import toolkit
from sandbox.errors import SandboxFault
from schemas.evaluation import DeviceState
from schemas.hardware import Hardware

REPEATS = 20
SLOT_SHARE = 1 / 32
"""Share of the memory for the slots of one runner, of which a task has up to five open."""
SIDE = 8192
"""Side of the square matrices whose product measures the peak rate of arithmetic."""
DRIVER_TOO_OLD = ("cudaErrorInsufficientDriver", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH")


class Cuda(Device):
    """The first GPU that this process is shown (`CUDA_VISIBLE_DEVICES`)."""

    kind: Literal["cuda"] = "cuda"
    spins = True
    most_slots = 64

    def __init__(self) -> None:
        """Raises `SandboxFault` without a driver, a device or the `cuda` extra."""
        self._number = _device()

    @property
    def place(self) -> torch.device:
        """See `Device`."""
        return torch.device("cuda", 0)

    def identity(self) -> Identity:
        """See `Device`."""
        from cuda.bindings import driver

        attribute = driver.CUdevice_attribute
        return Identity(
            name=_name(self._number),
            architecture=f"sm_{self._attribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)}"
            f"{self._attribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)}",
            units=self._attribute(attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
            cores=cores(),
            cache_bytes=self._attribute(attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
            memory_bytes=int(checked(driver.cuDeviceTotalMem(self._number))),
            torch_version=torch.__version__,
            compiler=_compiler(),
            driver_version=_driver_version(self._nvml),
        )

    def measure(self) -> Hardware:
        """See `Device`."""
        who = self.identity()
        place = self.place
        elements = max(8 * who.cache_bytes, 256 << 20) // 4
        source, target = torch.ones(elements, device=place), torch.empty(elements, device=place)
        left, right = torch.rand(SIDE, SIDE, device=place), torch.rand(SIDE, SIDE, device=place)
        halves = left.bfloat16(), right.bfloat16()
        small = torch.ones(16, device=place)

        def best(work: Callable[[], object]) -> float:
            return best_seconds(work, _clock, REPEATS)

        return Hardware.create(
            kind="cuda",
            **who._asdict(),
            read_bytes_per_second=4 * elements / best(lambda: source.sum()),
            copy_bytes_per_second=8 * elements / best(lambda: target.copy_(source)),
            flops_per_second=2 * SIDE**3 / best(lambda: torch.mm(left, right)),
            tensor_flops_per_second=2 * SIDE**3 / best(lambda: torch.mm(*halves)),
            launch_seconds=best(lambda: [small.neg() for _ in range(100)]) / 100,
        )

    def touch(self) -> None:
        """See `Device`."""
        self._speck.add_(1)

    def synchronize(self) -> None:
        """See `Device`."""
        torch.cuda.synchronize()

    def state(self) -> DeviceState | None:
        """See `Device`."""
        return None if self._nvml is None else self._nvml.state()

    def slot_budget(self) -> int:
        """See `Device`."""
        return int(SLOT_SHARE * torch.cuda.mem_get_info()[1])

    def judge_slots(self, nbytes: int) -> Region:
        """See `Device`."""
        return CudaRegion(nbytes)

    def runner_slots(self, fds: Sequence[int], nbytes: int) -> Region:  # noqa: ARG002  (a GPU needs none)
        """See `Device`."""
        return CudaRegion.own(nbytes)

    def _attribute(self, attribute: Any) -> int:
        from cuda.bindings import driver

        return int(checked(driver.cuDeviceGetAttribute(attribute, self._number)))

    @cached_property
    def _speck(self) -> torch.Tensor:
        return torch.zeros(1, device=self.place)

    @cached_property
    def _nvml(self) -> Nvml | None:
        from cuda.bindings import runtime

        return nvml(checked(runtime.cudaDeviceGetPCIBusId(32, 0)).decode().rstrip("\0"))


def visible_devices() -> dict[str, str]:
    """Names of the GPUs that this process is shown, by what `CUDA_VISIBLE_DEVICES` calls them. Opens no context.

    Raises `SandboxFault` where CUDA cannot work.
    """
    _device()
    from cuda.bindings import driver, runtime

    count = int(checked(runtime.cudaGetDeviceCount()))
    shown = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    names = shown[:count] or [str(number) for number in range(count)]
    return {name: _name(checked(driver.cuDeviceGet(number))) for number, name in enumerate(names)}


def _name(number: Any) -> str:
    from cuda.bindings import driver

    return str(checked(driver.cuDeviceGetName(128, number)).split(b"\0")[0].decode().strip())


def _device() -> Any:
    """The driver's number of the first visible device. Raises `SandboxFault`."""
    try:
        from cuda.bindings import driver, runtime
    except ImportError as error:
        raise SandboxFault(
            "a GPU needs the package cuda-bindings: install the extra with `pip install 'kernelquarry[cuda]'`"
        ) from error
    if not torch.version.cuda:
        raise SandboxFault(f"torch {torch.__version__} is built without CUDA: install a CUDA build of torch")
    try:
        checked(driver.cuInit(0))
        count = int(checked(runtime.cudaGetDeviceCount()))
    except (CudaError, RuntimeError) as error:
        raise SandboxFault(_refusal(str(error))) from error
    if count == 0:
        raise SandboxFault("no CUDA device is visible: check `nvidia-smi` and CUDA_VISIBLE_DEVICES")
    return checked(driver.cuDeviceGet(0))


def _refusal(error: str) -> str:
    if any(name in error for name in DRIVER_TOO_OLD):
        return (
            f"the NVIDIA driver is too old for CUDA {torch.version.cuda}, which torch was built for: "
            "install a newer driver, or a torch build for an older CUDA"
        )
    if "NO_DEVICE" in error or "NoDevice" in error:
        return "no CUDA device is visible: check `nvidia-smi` and CUDA_VISIBLE_DEVICES"
    return f"CUDA does not start ({error}): is the NVIDIA driver installed? `nvidia-smi` should list the GPU"


def _clock(work: Callable[[], object]) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    start.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) / 1e3


def _compiler() -> str:
    text = subprocess.run([toolkit().nvcc, "--version"], capture_output=True, text=True, check=False).stdout
    release = next((word for word in text.split() if word.startswith("V")), "V?")
    return f"nvcc {release.removeprefix('V')}"


def _driver_version(monitor: Nvml | None) -> str | None:
    return None if monitor is None else monitor.driver_version()
