"""Clocks, temperature, power and throttling of an NVIDIA GPU, read through NVML without a CUDA context."""

from __future__ import annotations

from typing import Any

from schemas.evaluation import DeviceState

REASONS = (
    ("sw_power_cap", 0x4),
    ("hw_slowdown", 0x8),
    ("sync_boost", 0x10),
    ("sw_thermal_slowdown", 0x20),
    ("hw_thermal_slowdown", 0x40),
    ("hw_power_brake", 0x80),
)
"""Bits of `nvmlDeviceGetCurrentClocksEventReasons` that mean: slower than it could be. Idle and set clocks are not."""


class Nvml:
    """One GPU as NVML sees it; every figure is null where the driver does not give it."""

    def __init__(self, pci_bus_id: str) -> None:
        """Raises `ImportError` without `nvidia-ml-py`, `OSError` where NVML does not answer."""
        import pynvml

        self._nvml: Any = pynvml
        try:
            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByPciBusId(pci_bus_id.encode())
        except pynvml.NVMLError as error:
            raise OSError(f"NVML: {error}") from error

    def state(self) -> DeviceState:
        """The device now."""
        nvml = self._nvml
        reasons = self._read("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
        power, energy = self._read("nvmlDeviceGetPowerUsage"), self._read("nvmlDeviceGetTotalEnergyConsumption")
        return DeviceState(
            sm_clock_mhz=self._read("nvmlDeviceGetClockInfo", arguments=(nvml.NVML_CLOCK_SM,)),
            memory_clock_mhz=self._read("nvmlDeviceGetClockInfo", arguments=(nvml.NVML_CLOCK_MEM,)),
            temperature_c=self._read("nvmlDeviceGetTemperature", arguments=(nvml.NVML_TEMPERATURE_GPU,)),
            power_w=None if power is None else power / 1e3,
            energy_j=None if energy is None else energy / 1e3,
            throttled=tuple(name for name, bit in REASONS if reasons is not None and reasons & bit),
        )

    def driver_version(self) -> str:
        """The driver's version: `580.159.04`."""
        version = self._nvml.nvmlSystemGetDriverVersion()
        return version.decode() if isinstance(version, bytes) else str(version)

    def _read(self, *names: str, arguments: tuple[object, ...] = ()) -> int | None:
        """The first of several functions that this driver has (one was renamed)."""
        for name in names:
            function = getattr(self._nvml, name, None)
            if function is None:
                continue
            try:
                return int(function(self._handle, *arguments))
            except self._nvml.NVMLError:
                return None
        return None


def nvml(pci_bus_id: str) -> Nvml | None:
    """NVML for a GPU; null where it cannot be had, which costs a label nothing but its clocks."""
    try:
        return Nvml(pci_bus_id)
    except (ImportError, OSError):
        return None
