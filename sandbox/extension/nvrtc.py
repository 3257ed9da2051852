"""Device code as text to a binary for one architecture: NVRTC, which needs neither a driver nor a GPU.

The compiler is a library, and what it compiles is a stranger's: it runs in a process of its own, which is this
module's `main`. The request and the answer are files in its working folder.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from sandbox.errors import SandboxFault
from sandbox.extension.calls import DeviceModule
from sandbox.extension.nvcc import sift
from schemas.record import Record

REQUEST, BINARY, NAMES = "request.json", "module.cubin", "names.json"


class Request(Record):
    """What is to be compiled."""

    module: DeviceModule
    architecture: str
    includes: tuple[str, ...]


class Lowered(NamedTuple):
    """What stands in the folder afterwards."""

    binary: Path
    names: dict[str, str]
    """Mangled names of the template instances that were asked for."""


def command() -> list[str]:
    """The command that compiles the request in its working folder."""
    return [sys.executable, "-P", "-s", "-m", "sandbox.extension.nvrtc"]


def write_request(folder: Path, request: Request) -> None:
    """Put a request into a folder."""
    (folder / REQUEST).write_text(request.model_dump_json())


def read_answer(folder: Path) -> Lowered:
    """What the compiler left. Raises `SandboxFault` where that is not what it writes."""
    try:
        names = json.loads((folder / NAMES).read_text())
        return Lowered(folder / BINARY, {str(key): str(value) for key, value in names.items()})
    except (OSError, ValueError, AttributeError) as error:
        raise SandboxFault(f"NVRTC left no readable answer in {folder}: {error}") from error


def main() -> int:
    """Compile; messages go to stderr, and a failure of the source is status 1."""
    try:
        request = Request.model_validate_json(Path(REQUEST).read_text())
        from cuda.bindings import nvrtc
    except (OSError, ValidationError, ImportError) as error:
        sys.stderr.write(f"NVRTC cannot be used: {error}: `pip install cuda-bindings nvidia-cuda-nvrtc`\n")
        return 2
    status, program = nvrtc.nvrtcCreateProgram(request.module.code.encode(), b"candidate.cu", 0, [], [])
    for name in request.module.names:
        nvrtc.nvrtcAddNameExpression(program, name.encode())
    options = [f"--gpu-architecture={request.architecture}", "--std=c++17", "--ptxas-options=-v"]
    options += [*sift(request.module.options), *(f"-I{path}" for path in request.includes)]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = b" " * size
    nvrtc.nvrtcGetProgramLog(program, log)
    sys.stderr.write(log.rstrip(b"\0").decode(errors="replace") + "\n")
    if int(status) != 0:
        return 1
    _, size = nvrtc.nvrtcGetCUBINSize(program)
    binary = b" " * size
    nvrtc.nvrtcGetCUBIN(program, binary)
    Path(BINARY).write_bytes(binary)
    lowered = {name: nvrtc.nvrtcGetLoweredName(program, name.encode())[1].decode() for name in request.module.names}
    Path(NAMES).write_text(json.dumps(lowered))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
