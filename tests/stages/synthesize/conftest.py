"""A small set of operators, mined here from calls that are spelled out, so that no test needs torch's test data."""

from __future__ import annotations

import pytest
import torch

from schemas.hardware import Hardware
from schemas.operator import Form, Operator
from schemas.parameters import SynthesizeParameters
from schemas.task import Task
from stages.mine.draft import draft, learn
from stages.mine.invocation import Invocation, as_arguments
from stages.mine.simplify import plain_form
from stages.synthesize import synthesize
from tests.factories import hardware

X = torch.rand(4, 6)
IMAGE = torch.rand(4, 6, 8, 8)
CLASSES = torch.zeros(4, dtype=torch.int64)
FUNCTIONS: dict[str, tuple[object, ...]] = {
    "nn.functional.relu": (X,),
    "nn.functional.gelu": (X,),
    "nn.functional.silu": (X,),
    "tanh": (X,),
    "exp": (X,),
    "log": (X,),
    "add": (X, X),
    "mul": (X, X),
    "maximum": (X, X),
    "softmax": (X, -1),
    "sum": (X, -1),
    "amax": (X, -1, True),
    "cumsum": (X, -1),
    "nn.functional.glu": (X, -1),
    "nn.functional.mse_loss": (X, X),
    "nn.functional.cross_entropy": (X, CLASSES),
    "nn.functional.avg_pool2d": (IMAGE, 2),
    "permute": (IMAGE, [0, 2, 3, 1]),
}
MODULES: dict[str, tuple[tuple[object, ...], tuple[object, ...]]] = {
    "Linear": ((6, 5), (X,)),
    "LayerNorm": ((6,), (X,)),
    "GroupNorm": ((2, 6), (IMAGE,)),
    "Conv2d": ((6, 5, 3), (IMAGE,)),
    "Embedding": ((7, 5), (CLASSES,)),
}
COUNT = 12


@pytest.fixture(scope="session")
def operators() -> list[Operator]:
    calls = [Invocation(f"torch.{name}", Form.FUNCTION, as_arguments(fed, {})) for name, fed in FUNCTIONS.items()]
    calls += [
        Invocation(f"torch.nn.{name}", Form.MODULE, as_arguments(fed, {}), as_arguments(made, {}))
        for name, (made, fed) in MODULES.items()
    ]
    plain = [plain_form(call) for call in calls]
    return [draft(call.target, call, learn(call)) for call in plain]


@pytest.fixture(scope="session")
def machine() -> Hardware:
    return hardware()


@pytest.fixture(scope="session")
def parameters() -> SynthesizeParameters:
    return SynthesizeParameters(tasks=COUNT, seed=3)


@pytest.fixture(scope="session")
def tasks(operators: list[Operator], machine: Hardware, parameters: SynthesizeParameters) -> list[Task]:
    return list(synthesize(operators, machine, parameters))
