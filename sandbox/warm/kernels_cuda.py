"""For a server of candidates on a GPU: loads the languages that they are written in, and Triton's own helpers.

Triton compiles a small C module of its own the first time that its driver is used; every candidate would.
"""

import contextlib

from sandbox.warm.asking import nobody_asks

with nobody_asks():
    import torch.utils.cpp_extension  # noqa: F401

with contextlib.suppress(ImportError):
    import cuda.bindings.driver
    import cuda.bindings.runtime  # noqa: F401

with contextlib.suppress(Exception):
    import cupy  # noqa: F401

with contextlib.suppress(Exception):  # whatever Triton lacks, a candidate that needs it will say
    from triton.backends.nvidia.driver import CudaUtils

    CudaUtils()
