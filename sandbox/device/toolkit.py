"""The CUDA toolkit of this machine."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from functools import cache
from pathlib import Path
from typing import NamedTuple

from sandbox.errors import SandboxFault

WHEELS = Path(sysconfig.get_path("purelib")) / "nvidia"
PLACES = ("/usr/local/cuda/bin/nvcc", *map(str, sorted(WHEELS.glob("cu*/bin/nvcc"))))
"""Where a compiler may stand that is not on PATH: the usual place, and NVIDIA's wheels."""


class Toolkit(NamedTuple):
    """A CUDA toolkit."""

    nvcc: str
    include: Path
    runtime: Path
    """The shared library that extensions are linked to, `libcudart`."""


@cache
def toolkit() -> Toolkit:
    """The toolkit of `nvcc` on PATH, else of the usual place, else of NVIDIA's wheels. Raises `SandboxFault`."""
    nvcc = next(
        (place for place in (shutil.which("nvcc"), *PLACES) if place is not None and Path(place).exists()), None
    )
    if nvcc is None:
        raise SandboxFault(
            "no CUDA compiler: `nvcc` is not on PATH; install the CUDA toolkit, or `pip install nvidia-cuda-nvcc`"
        )
    root = _root(nvcc)
    folders = [root / "lib64", root / "lib", root / "targets/x86_64-linux/lib"]
    libraries = sorted(path for folder in folders for path in folder.glob("libcudart.so*"))
    if not libraries:
        raise SandboxFault(f"the CUDA toolkit in {root} has no libcudart.so: install its runtime library")
    return Toolkit(nvcc, root / "include", libraries[0])


def _root(nvcc: str) -> Path:
    """The toolkit's folder as nvcc itself says: the program on PATH may be a script that calls another."""
    said = subprocess.run([nvcc, "--dryrun", "-c", "none.cu"], capture_output=True, text=True, check=False).stderr
    top = re.search(r"^#\$ TOP=(.+)$", said, re.MULTILINE)
    return Path(top.group(1).strip()).resolve() if top else Path(nvcc).resolve().parents[1]
