"""The device that kernels run on: what it is, how fast it is at best, and how two processes share its memory.

Everything that differs between a CPU and a GPU for the judge stands behind `Device`.
"""

from __future__ import annotations

from sandbox.device.base import Device, Identity, Kind


def open_device(kind: Kind) -> Device:
    """The device of this process: the CPU, or the first CUDA device that it is shown.

    Opening does not create a CUDA context; the first tensor does. Raises `SandboxFault` where CUDA cannot work.
    """
    if kind == "cpu":
        from sandbox.device.cpu import Cpu

        return Cpu()
    from sandbox.device.cuda import Cuda

    return Cuda()


__all__ = ["Device", "Identity", "Kind", "open_device"]
