"""Keeps modules that are being imported from asking the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def nobody_asks() -> Iterator[None]:
    """Answer "is there a GPU?" with yes, without looking.

    Some of torch's modules ask on import. Asked of the driver, or of NVML, no child of this process could use the GPU.
    """
    real = torch.cuda.is_available
    torch.cuda.is_available = lambda: True
    try:
        yield
    finally:
        torch.cuda.is_available = real
