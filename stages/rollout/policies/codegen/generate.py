"""From a task's source to a candidate: the one entry of the generator."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, NamedTuple

from stages.rollout.policies.codegen.arrange import arrange
from stages.rollout.policies.codegen.choices import Choices, Fusion
from stages.rollout.policies.codegen.cpp.kernel import Function, write_kernel
from stages.rollout.policies.codegen.cpp.module import FLAGS, Segment, cpp_source, forward
from stages.rollout.policies.codegen.cuda import kernel as cuda_kernel
from stages.rollout.policies.codegen.cuda import module as cuda_module
from stages.rollout.policies.codegen.cuda.split import with_split_folds
from stages.rollout.policies.codegen.cuda.teams import in_teams
from stages.rollout.policies.codegen.expr import loads
from stages.rollout.policies.codegen.fuse import Block, fused, separate
from stages.rollout.policies.codegen.ir import LibraryCall, Program, Stage, Tensor
from stages.rollout.policies.codegen.lower.driver import Grain, Refused, lower
from stages.rollout.policies.codegen.nest import Nest
from stages.rollout.policies.codegen.plan import Kernel
from stages.rollout.policies.codegen.source import ModelSource
from stages.rollout.policies.codegen.trace import Trace, TraceFailed, trace

__all__ = ["Generated", "Machine", "Refused", "TraceFailed", "generate", "program_of", "traced"]


class Machine(NamedTuple):
    """What a candidate is written for."""

    language: Literal["cpp", "cuda"]
    units: int
    """Cores or multiprocessors."""

    @property
    def points(self) -> int:
        """Independent iterations that a kernel should have at least: blocks wait for memory, so a GPU wants many."""
        return self.units if self.language == "cpp" else 4 * self.units


class Generated(NamedTuple):
    """A candidate and what it is made of."""

    text: str
    """`model_new.py`."""
    source: str
    """Its C++ or CUDA."""
    kernels: tuple[Kernel, ...]
    segments: tuple[Segment, ...]
    library: tuple[str, ...]
    """Operators left to PyTorch, in order."""


@lru_cache(maxsize=8)
def traced(source: str) -> Trace:
    """The traced task; raises `TraceFailed`. Kept, because every turn of an episode starts from it."""
    return trace(source)


def program_of(source: str, fusion: Fusion) -> Program:
    """The task's program; raises `TraceFailed` and `Refused`."""
    return lower(traced(source), Grain.OPERATOR if fusion is Fusion.NONE else Grain.CHAIN)


def generate(source: str, name: str, choices: Choices, machine: Machine) -> Generated:
    """The candidate that `choices` make of a task's source, for a machine.

    `name` names the extension. Raises `TraceFailed` or `Refused` where the task cannot be taken apart, and `Refused`
    where no operator of it has a loop form.
    """
    program = program_of(source, choices.fusion)
    if not program.stages:
        raise Refused("no operator of the graph has a loop form here")
    if machine.language == "cuda":
        program = with_split_folds(program, machine.points)
    blocks = fused(program, machine.points) if choices.fusion is Fusion.ROWS else separate(program)
    steps, kernels = _segments(program, blocks, choices, machine)
    segments = [step for step in steps if isinstance(step, Segment)]
    written = cpp_source(segments, choices) if machine.language == "cpp" else cuda_module.cuda_source(segments)
    load = _load_cpp(name, segments) if machine.language == "cpp" else _load_cuda(name, segments)
    text = _module(ModelSource(source), written, load, forward(program, steps))
    return Generated(text, written, tuple(kernels), tuple(segments), tuple(call.operator for call in program.library))


def _readers(block: Block) -> set[str]:
    if isinstance(block, LibraryCall):
        return set(block.uses)
    return {load.name for item in block.items for load in loads(item.value)}


def _needed(program: Program, blocks: list[Block]) -> list[frozenset[str]]:
    """For each block: the tensors that are read outside of it."""
    outputs = {stage.name for stage in program.stages if _is_output(program, stage)}
    reads = [_readers(block) for block in blocks]
    return [frozenset(outputs.union(*[r for other, r in enumerate(reads) if other != n])) for n in range(len(blocks))]


def _is_output(program: Program, stage: Stage) -> bool:
    return any(output.split(".")[0] == stage.name for output in program.outputs)


def _segments(
    program: Program, blocks: list[Block], choices: Choices, machine: Machine
) -> tuple[list[Segment | LibraryCall], list[Kernel]]:
    ordered = sorted(program.arguments.items(), key=lambda pair: pair[1].python.startswith("self"))
    tensors = {name: argument.tensor for name, argument in ordered}
    tensors |= {stage.name: stage.tensor for stage in program.stages}
    for block in blocks:
        tensors |= {item.name: item.stage.tensor for item in block.items} if isinstance(block, Nest) else {}
    steps: list[Segment | LibraryCall] = []
    kernels: list[Kernel] = []
    run: list[Function] = []
    places: list[list[Function]] = []
    order: list[LibraryCall | list[Function]] = []
    for block, needed in zip(blocks, _needed(program, blocks), strict=True):
        if isinstance(block, LibraryCall):
            order.append(block)
            run = []
            continue
        if not run:
            order.append(run)
            places.append(run)
        if machine.language == "cpp":
            kernel = arrange(block, needed, choices, machine.units)
            function = write_kernel(_kernel_name(kernel, len(kernels) + 1), kernel, tensors, choices)
        else:
            kernel, team = in_teams(block, needed, choices)
            function = cuda_kernel.write_kernel(_kernel_name(kernel, len(kernels) + 1), kernel, team, tensors, choices)
        kernels.append(kernel)
        run.append(function)
    for step in order:
        number = sum(isinstance(one, Segment) for one in steps)
        steps.append(step if isinstance(step, LibraryCall) else _segment(program, step, order, number))
    return steps, kernels


def _kernel_name(kernel: Kernel, number: int) -> str:
    labels = [work.item.stage.label for work in kernel.works if work.written]
    words = [word for label in labels for word in label.replace(",", " ").split() if word.isidentifier()]
    known = [word for word in dict.fromkeys(words) if word not in ("of", "the", "minus", "rows")]
    return "_".join([*known[-3:], f"kernel{number}"])


def _segment(program: Program, run: list[Function], order: list[LibraryCall | list[Function]], number: int) -> Segment:
    made = {one.name: one for function in run for one in function.writes}
    read = {one.name: one for function in run for one in function.reads if one.name not in made}
    elsewhere: set[str] = set()
    for other in order:
        if isinstance(other, LibraryCall):
            elsewhere |= set(other.uses)
        elif other is not run:
            elsewhere |= {one.name for function in other for one in function.reads}
    outputs = {stage.name for stage in program.stages if _is_output(program, stage)}
    returned = tuple(one for name, one in made.items() if name in elsewhere | outputs)
    return Segment("fused" if number == 0 else f"fused{number + 1}", tuple(run), _ordered(program, read), returned)


def _ordered(program: Program, read: dict[str, Tensor]) -> tuple[Tensor, ...]:
    """Arguments in the order in which `forward` meets them: inputs and results first, then parameters."""

    def key(tensor: Tensor) -> tuple[bool, int]:
        argument = program.arguments.get(tensor.name)
        parameter = argument is not None and argument.python.startswith("self")
        return parameter, list(program.arguments).index(tensor.name) if argument is not None else 0

    return tuple(sorted(read.values(), key=key))


def _module(source: ModelSource, written: str, load: list[str], body: list[str]) -> str:
    lines = ["import torch", "import torch.nn as nn", "from torch.utils.cpp_extension import load_inline", ""]
    lines += [*source.preamble(), ""] if source.preamble() else []
    lines += ["source = r'''", written.strip(), "'''", "", "kernel = load_inline(", *load, ")", "", ""]
    lines += ["class ModelNew(nn.Module):", *source.constructor()]
    lines += [""] if source.constructor() else []
    lines += [f"    def forward({source.signature()}):", *[f"        {line}" for line in body]]
    return "\n".join(lines) + "\n"


def _load_cpp(name: str, segments: list[Segment]) -> list[str]:
    return [
        f'    name="{name}",',
        "    cpp_sources=source,",
        f"    functions=[{_quoted([segment.name for segment in segments])}],",
        f"    extra_cflags=[{_quoted(FLAGS)}],",
        '    extra_ldflags=["-fopenmp"],',
    ]


def _load_cuda(name: str, segments: list[Segment]) -> list[str]:
    return [
        f'    name="{name}",',
        f'    cpp_sources="""{cuda_module.declarations(segments).strip()}""",',
        "    cuda_sources=source,",
        f"    functions=[{_quoted([segment.name for segment in segments])}],",
        f"    extra_cuda_cflags=[{_quoted(cuda_module.FLAGS)}],",
    ]


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)
