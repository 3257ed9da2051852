"""The machine at hand with its peak rates, measured once and then kept, so that a second run sees the same figures."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Literal, NamedTuple

from pipeline.errors import UserError
from pipeline.ledger import Ledger, ledger_key
from pipeline.settings import Settings
from sandbox.device import Kind, open_device
from sandbox.device.cuda import visible_devices
from sandbox.errors import SandboxFault
from schemas.hardware import Hardware


class Crew(NamedTuple):
    """Worker processes of this host."""

    builders: int
    devices: tuple[str, ...]
    """What each judge is shown as `CUDA_VISIBLE_DEVICES`; empty on a CPU."""
    threads: int
    """Threads that a worker may compute with."""


def crew(hardware: Hardware, settings: Settings) -> Crew:
    """One judge for each device, and builders for the cores that are left. Raises `UserError` for unequal GPUs."""
    if hardware.kind == "cpu":
        return Crew(hardware.cores, ("",) * settings.simulated_devices, hardware.cores)
    names = visible_devices()
    others = sorted({name for name in names.values() if name != hardware.name})
    if others:
        raise UserError(
            f"this host has a {hardware.name} and a {others[0]}, and labels of one do not hold for the other: "
            "show the run equal GPUs only, with CUDA_VISIBLE_DEVICES"
        )
    return Crew(max(2, hardware.cores - 1 - 2 * len(names)), tuple(names), hardware.cores)


def device_kind(asked: Literal["auto", "cpu", "cuda"]) -> Kind:
    """The kind of device that a run uses: what the parameters say, or a GPU where one works."""
    if asked != "auto":
        return asked
    try:
        return open_device("cuda").kind
    except SandboxFault:
        return "cpu"


def hardware(ledger: Ledger, kind: Kind) -> Hardware:
    """The hardware record of this machine's device. Raises `UserError` where the device or its compiler is missing."""
    try:
        key = ledger_key("hardware", kind, *open_device(kind).identity())
        stored = ledger.get(key)
        if stored is not None:
            return Hardware.model_validate_json(stored)
        measured = _measured(kind)
    except SandboxFault as error:
        raise UserError(str(error)) from error
    ledger.put(key, "hardware", measured.model_dump_json())
    return measured


def _measured(kind: Kind) -> Hardware:
    """Measured rates. A GPU is measured in a process of its own, so that this one never holds a context."""
    if kind == "cpu":
        return open_device(kind).measure()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_measure, kind).result()


def _measure(kind: Kind) -> Hardware:
    return open_device(kind).measure()
