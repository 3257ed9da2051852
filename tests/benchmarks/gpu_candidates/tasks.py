"""The tasks: eager takes about 0.1 to 2 ms on an H200 at their full sizes; small ones let a CPU try the benchmarks.

Inputs come from `torch.rand`, as most of KernelBench's do: what is right on them only is one thing to be told apart.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from sandbox.reference import load_task_source
from schemas.operator import Family
from schemas.task import Task
from schemas.tensor import TensorSpec
from stages.graph.identity import graph_hash, structure_hash
from stages.graph.trace import aten_names, outputs, trace_source
from stages.graph.work import work

HEAD = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, WIDTH, FEATURES = {rows}, {width}, {features}


class Model(nn.Module):
"""
TAIL = """

def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


class Sketch(NamedTuple):
    """A task in a few words."""

    family: Family
    body: str
    """The methods of `Model`."""
    inputs: str
    """What `get_inputs` lists."""
    full: tuple[int, int, int]
    """ROWS, WIDTH and FEATURES on a GPU."""
    small: tuple[int, int, int]

    def source(self, *, small: bool) -> str:
        """The reference in KernelBench's form."""
        rows, width, features = self.small if small else self.full
        head = HEAD.format(rows=rows, width=width, features=features)
        return head + self.body.strip("\n") + "\n" + TAIL.format(inputs=self.inputs)


ONE = "torch.rand(ROWS, WIDTH)"
TWO = "torch.rand(ROWS, WIDTH), torch.rand(ROWS, WIDTH)"

TASKS: dict[str, Sketch] = {
    "gelu_chain": Sketch(
        Family.POINTWISE,
        """
    def forward(self, x, y):
        return torch.clamp(F.gelu(x * 1.5 + y), min=-0.1, max=3.0)
""",
        TWO,
        (4096, 4096, 0),
        (512, 1024, 0),
    ),
    "softmax": Sketch(
        Family.SOFTMAX,
        """
    def forward(self, x):
        return torch.softmax(x * 0.5, dim=-1)
""",
        ONE,
        (2048, 16384, 0),
        (128, 4096, 0),
    ),
    "layer_norm": Sketch(
        Family.NORMALISATION,
        """
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x, y):
        return self.norm(x + y)
""",
        TWO,
        (8192, 4096, 0),
        (512, 1024, 0),
    ),
    "rms_gate": Sketch(
        Family.NORMALISATION,
        """
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x, y):
        scale = torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-6)
        return x * scale * self.weight * F.silu(y)
""",
        TWO,
        (8192, 4096, 0),
        (512, 1024, 0),
    ),
    "linear_gelu": Sketch(
        Family.MATMUL,
        """
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, FEATURES)

    def forward(self, x):
        return F.gelu(self.linear(x))
""",
        ONE,
        (4096, 2048, 4096),
        (256, 256, 512),
    ),
    "row_energy": Sketch(
        Family.REDUCTION,
        """
    def forward(self, x):
        return torch.log1p((x * x).sum(dim=1))
""",
        ONE,
        (8192, 8192, 0),
        (512, 2048, 0),
    ),
    "soft_cross_entropy": Sketch(
        Family.LOSS,
        """
    def forward(self, x, y):
        return torch.logsumexp(x, dim=1) - (x * y).sum(dim=1)
""",
        TWO,
        (4096, 8192, 0),
        (256, 2048, 0),
    ),
    "transpose_add": Sketch(
        Family.LAYOUT,
        """
    def forward(self, x, y):
        return x.t().contiguous() + y
""",
        "torch.rand(ROWS, WIDTH), torch.rand(WIDTH, ROWS)",
        (4096, 8192, 0),
        (512, 1024, 0),
    ),
}


def task(name: str, *, small: bool) -> Task:
    """The record of a task, its work counted from its graph."""
    return task_of(name, TASKS[name].source(small=small), TASKS[name].family)


def task_of(name: str, source: str, family: Family) -> Task:
    """The record of any reference whose inputs are float32 and may be any real numbers."""
    graph_module = trace_source(source)
    done = work(graph_module)
    with FakeTensorMode(allow_non_fake_inputs=True):
        inputs = load_task_source(source).get_inputs()
    return Task.create(
        name=name,
        source=source,
        level=2,
        operators=(name,),
        operator_ids=(name,),
        families=(family,),
        inputs=tuple(_spec(value) for value in inputs),
        outputs=tuple(_spec(node.meta["val"]) for node in outputs(graph_module)),
        parameter_bytes=done.parameter_bytes,
        flops=done.flops,
        bytes=done.compulsory_bytes,
        estimated_seconds=1e-3,
        aten_ops=aten_names(graph_module),
        graph_hash=graph_hash(graph_module),
        structure_hash=structure_hash(graph_module),
        split_group=name,
        nearest_benchmark=None,
        nearest_score=None,
    )


def _spec(value: torch.Tensor) -> TensorSpec:
    return TensorSpec(shape=tuple(int(size) for size in value.shape))
