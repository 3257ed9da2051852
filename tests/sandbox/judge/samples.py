"""Tasks and candidates that the judge's tests share."""

from __future__ import annotations

from schemas.candidate import Candidate, Language, SourceFile
from schemas.operator import Family
from schemas.task import Task
from schemas.tensor import TensorSpec

SOURCE = """
import torch
import torch.nn as nn

batch = 64
features = 96


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x, y):
        return torch.tanh(self.norm(x)) * y


def get_inputs():
    return [torch.randn(batch, features), torch.randn(batch, features)]


def get_init_inputs():
    return []
"""

HONEST = """
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(96)

    def forward(self, x, y):
        return torch.tanh(self.norm(x)) * y
"""


def task(source: str = SOURCE) -> Task:
    """A small task with two inputs and parameters."""
    spec = TensorSpec(shape=(64, 96))
    return Task.create(
        name="layer_norm_tanh_mul",
        source=source,
        level=2,
        operators=("torch.nn.LayerNorm", "torch.tanh", "torch.mul"),
        operator_ids=("a", "b", "c"),
        families=(Family.NORMALISATION, Family.POINTWISE, Family.POINTWISE),
        inputs=(spec, spec),
        outputs=(spec,),
        parameter_bytes=768,
        flops=64 * 96 * 8,
        bytes=3 * spec.nbytes,
        estimated_seconds=1e-5,
        aten_ops=("native_layer_norm", "tanh", "mul"),
        graph_hash="graph",
        structure_hash="structure",
        split_group="group",
        nearest_benchmark=None,
        nearest_score=None,
    )


def candidate(of: Task, text: str) -> Candidate:
    """A candidate of one file."""
    return Candidate.create(
        task_id=of.task_id,
        language=Language.PYTHON,
        files=(SourceFile(path="model_new.py", text=text),),
        policy="test",
        parent_candidate_id=None,
    )


def forward(body: str, before: str = "") -> str:
    """The honest candidate with another body of `forward` and code in front of the class."""
    indented = "\n".join("        " + line for line in body.strip().splitlines())
    head, _, _ = HONEST.partition("        return torch.tanh")
    return head.replace("\n\nclass", f"\n{before}\n\nclass") + indented + "\n"
