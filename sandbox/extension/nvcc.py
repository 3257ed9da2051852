"""The CUDA compiler: how it is called, and what it says about the kernels that it made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sandbox.device.toolkit import toolkit
from schemas.evaluation import KernelUsage

TORCH_DEFINES = (
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
)
"""What torch itself defines: without them a build would accept arithmetic that torch's refuses."""
DEFAULTS = ("-O3", "-std=c++17", "--expt-relaxed-constexpr", "-Xcompiler", "-fPIC,-fvisibility=hidden,-w", "-w")
IMPLICIT = ("torch/types.h", "cuda.h", "cuda_runtime.h")
"""What `load_inline` puts in front of CUDA sources."""
ALLOWED = re.compile(
    r"-O[0-3]|--?use_fast_math|-lineinfo|--?(ftz|prec-div|prec-sqrt|fmad)=(true|false)|--?maxrregcount=\d+"
    r"|--expt-relaxed-constexpr|--expt-extended-lambda|--extended-lambda|-std=c\+\+(14|17|20)"
    r"|-D[A-Za-z_][A-Za-z0-9_]*(=[A-Za-z0-9_.+-]*)?|-U[A-Za-z_][A-Za-z0-9_]*|-w|-Xptxas=-O[0-3]|--ptxas-options=-O[0-3]"
)
"""Flags that change the code for the device at hand. Which device that is, is not the candidate's to say."""
LIBRARIES = re.compile(r"-lcublas|-lcublasLt|-lcuda|-lcurand|-lcufft|-lcusolver|-lcusparse")
ENTRY = re.compile(r"Function properties for (\S+)|Compiling entry function '(\S+)'")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")


def sift(flags: Iterable[str]) -> tuple[str, ...]:
    """The flags of a candidate that are passed on. One item may hold several; empty ones vanish."""
    return tuple(flag for item in flags for flag in item.split() if ALLOWED.fullmatch(flag))


def libraries(flags: Iterable[str]) -> tuple[str, ...]:
    """CUDA libraries that a candidate links."""
    return tuple(flag for item in flags for flag in item.split() if LIBRARIES.fullmatch(flag))


def object_command(
    source: str, made: str, *, architecture: str, includes: Sequence[str], flags: Sequence[str], inline: bool
) -> list[str]:
    """The call of nvcc that compiles one source to an object for one architecture (`sm_90`)."""
    number = architecture.removeprefix("sm_")
    target = ["-gencode", f"arch=compute_{number},code={architecture}"]
    implicit = [part for header in IMPLICIT for part in ("-include", header)] if inline else []
    return [
        toolkit().nvcc, *target, *DEFAULTS, *TORCH_DEFINES, *flags, *implicit, *includes,
        "-Xptxas", "-v", "-cudart", "shared", "-c", source, "-o", made,
    ]  # fmt: skip


def usage(messages: str) -> tuple[KernelUsage, ...]:
    """What the assembler said about each kernel (`-Xptxas -v`)."""
    found: dict[str, KernelUsage] = {}
    name, stack = "", (0, 0, 0)
    for line in messages.splitlines():
        if entry := ENTRY.search(line):
            name = entry.group(1) or entry.group(2)
        elif frame := STACK.search(line):
            stack = (int(frame.group(1)), int(frame.group(2)), int(frame.group(3)))
        elif (used := USED.search(line)) and name:
            found[name] = KernelUsage(
                name=name,
                registers=int(used.group(1)),
                shared_bytes=_bytes(line, "smem"),
                stack_bytes=stack[0],
                spill_store_bytes=stack[1],
                spill_load_bytes=stack[2],
            )
    return tuple(found.values())


def without_usage(messages: str) -> str:
    """A compiler's messages without the assembler's report."""
    kept = (line for line in messages.splitlines() if not line.startswith("ptxas info") and not STACK.search(line))
    return "\n".join(kept)


def _bytes(line: str, kind: str) -> int:
    amount = re.search(rf"(\d+) bytes {kind}", line)
    return int(amount.group(1)) if amount else 0
