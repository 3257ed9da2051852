"""Device memory that a runner owns and its judge maps, by CUDA's inter-process handles.

The runner owns it because memory mapped from another process has half the bandwidth: the candidate, which is timed,
works on memory of its own, and the judge, whose copies are not timed, on the mapping.
"""

from __future__ import annotations

from typing import Any

import torch

from sandbox.device.memory import HANDLE_BYTES, Field, Region


class CudaError(RuntimeError):
    """A call of the CUDA runtime that failed."""


def checked(result: tuple[Any, ...]) -> Any:
    """What a call of `cuda.bindings` returned besides its status. Raises `CudaError`."""
    status, *values = result
    if int(status) != 0:
        raise CudaError(f"{type(status).__name__}.{status.name}")
    return values[0] if len(values) == 1 else tuple(values)


class Bytes:
    """A stretch of device memory as the protocol that torch reads (`__cuda_array_interface__`, version 3)."""

    def __init__(self, address: int, nbytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (nbytes,), "typestr": "|u1", "data": (address, False), "version": 3, "strides": None,
        }  # fmt: skip


class CudaRegion(Region):
    """An allocation of the runtime's own, never of torch's pool, which the candidate may empty."""

    def __init__(self, nbytes: int) -> None:
        self._nbytes, self._address, self._owned = nbytes, 0, False

    @classmethod
    def own(cls, nbytes: int) -> CudaRegion:
        """A new region in the calling process. Raises `CudaError`, out of memory among others."""
        from cuda.bindings import runtime

        region = cls(nbytes)
        torch.zeros(1, device="cuda")  # the primary context, which torch and the runtime share
        region._address = int(checked(runtime.cudaMalloc(nbytes)))
        region._owned = True
        handle = checked(runtime.cudaIpcGetMemHandle(region._address))
        region.handle = bytes(handle.reserved)[:HANDLE_BYTES]
        return region

    def bind(self, handle: bytes) -> None:
        """See `Region`."""
        from cuda.bindings import driver, runtime

        wrapped = runtime.cudaIpcMemHandle_t()
        wrapped.reserved = handle
        try:
            address = checked(runtime.cudaIpcOpenMemHandle(wrapped, runtime.cudaIpcMemLazyEnablePeerAccess))
            base, size = checked(driver.cuMemGetAddressRange(int(address)))
        except CudaError as error:
            raise ValueError(f"the runner's slots cannot be mapped ({error})") from error
        if int(base) != int(address) or int(size) < self._nbytes:
            runtime.cudaIpcCloseMemHandle(address)
            raise ValueError(f"the runner's slots hold {size} bytes, not {self._nbytes}")
        self._address = int(address)

    def tensor(self, field: Field, base: int = 0) -> torch.Tensor:
        """See `Region`."""
        stretch = Bytes(self._address + base + field.offset, max(field.nbytes, 1))
        flat = torch.as_tensor(stretch, device="cuda")[: field.nbytes]
        whole: torch.Tensor = flat.view(getattr(torch, field.dtype)).view(field.shape)
        return whole

    def close(self) -> None:
        """See `Region`."""
        from cuda.bindings import runtime

        if not self._address:
            return
        address, self._address = self._address, 0
        if self._owned:
            runtime.cudaFree(address)
        else:
            runtime.cudaIpcCloseMemHandle(address)
