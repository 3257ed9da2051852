"""What a policy is told before its first turn: the rules, the machine, the task and what it has to beat."""

from __future__ import annotations

from schemas.baseline import Baseline
from schemas.hardware import Hardware
from schemas.task import Task
from schemas.tensor import TensorSpec
from schemas.timing import Ratio
from stages.rollout.units import bytes_text, milliseconds, ratio_text

RULES = """\
You write fast kernels for PyTorch modules. You are given a module `Model`; answer with `ModelNew`, a drop-in \
replacement that computes the same thing faster on the machine described below.

Rules
- Submit files with the tool `submit`. `model_new.py` must define `ModelNew` with the constructor arguments, the \
`forward` signature and the parameter names of `Model`; weights are loaded by name after construction.
- Write the work in {language} through `torch.utils.cpp_extension.load_inline`. Include `torch/extension.h`.
- `forward` returns new tensors and leaves its inputs alone. Inputs are fresh in every call: nothing can be cached.
- Every call is checked against a float64 reference on several kinds of inputs: normal, uniform, with a large offset, \
heavy-tailed, with spikes, with constant rows. The tolerance is a small multiple of PyTorch's own error.
- Time is measured from outside, interleaved with PyTorch eager and torch.compile, with cold caches.

Work in turns: state what bounds the task and what you expect, submit, read the verdict, improve. When nothing \
worth its effort is left, end with a turn without a submission.\
"""


LANGUAGES = {
    "cpu": "C++ (OpenMP and vector instructions are available)",
    "cuda": "CUDA C++ (`cuda_sources`, with the functions declared in `cpp_sources`; launch on the current stream)",
}


def system_text(hardware: Hardware) -> str:
    """Rules and hardware facts."""
    return f"{RULES.format(language=LANGUAGES[hardware.kind])}\n\nMachine\n{_machine(hardware)}"


def user_text(task: Task, baseline: Baseline) -> str:
    """The task with its inputs, its cost and both baselines."""
    compiled = "torch.compile cannot compile it"
    if baseline.compiled is not None and baseline.compile_speedup is not None:
        compiled = (
            f"torch.compile {milliseconds(baseline.compiled.seconds)} "
            f"({ratio_text(baseline.compile_speedup)} against eager)"
        )
    return "\n".join(
        [
            "Make this module faster.",
            "",
            "```python",
            task.source.rstrip(),
            "```",
            "",
            f"Inputs: {_specs(task.inputs)}. Outputs: {_specs(task.outputs)}. Parameters: "
            f"{bytes_text(task.parameter_bytes)}.",
            f"Work of one call: at least {bytes_text(task.bytes)} of memory traffic and {_flops(task.flops)}.",
            f"Baselines: eager {milliseconds(baseline.eager.seconds)}, {compiled}; eager against itself "
            f"{_spread(baseline.noise)}.",
            f"Roofline: {milliseconds(baseline.roofline_seconds)}, bound by {_bound(task, baseline.hardware)}.",
        ]
    )


def _machine(hardware: Hardware) -> str:
    units = "multiprocessors" if hardware.kind == "cuda" else "cores"
    return (
        f"{hardware.name}, {hardware.units} {units} ({hardware.architecture}), last-level cache "
        f"{bytes_text(hardware.cache_bytes)}, measured peaks: read {hardware.read_bytes_per_second / 1e9:.1f} GB/s, "
        f"copy {hardware.copy_bytes_per_second / 1e9:.1f} GB/s, fp32 matrix product "
        f"{hardware.flops_per_second / 1e9:.0f} GFLOP/s. Compiler {hardware.compiler}, torch {hardware.torch_version}."
    )


def _specs(specs: tuple[TensorSpec, ...]) -> str:
    return ", ".join(f"{spec.dtype} {list(spec.shape)}" for spec in specs)


def _flops(flops: int) -> str:
    return f"{flops / 1e6:.3g} MFLOP"


def _spread(noise: Ratio) -> str:
    return f"reads {ratio_text(noise)}"


def _bound(task: Task, hardware: Hardware) -> str:
    arithmetic = task.flops / hardware.flops_per_second
    return "arithmetic" if arithmetic > hardware.roofline_seconds(0, task.bytes) else "memory traffic"
