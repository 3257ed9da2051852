"""Reference sources for tests: a body in, a file in KernelBench's form out."""

from __future__ import annotations


def source(body: str, inputs: str, made: str = "pass", batch: int = 4) -> str:
    """`body` computes from the names that `inputs` (a comma-separated list of `name=expression`) draws."""
    drawn = dict(item.split("=", 1) for item in inputs.split("; "))
    init = "\n".join(f"        {line}" for line in made.split("; "))
    code = "\n".join(f"        {line}" for line in body.split("; "))
    return (
        "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
        f"BATCH = {batch}\n"
        f"class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n{init}\n"
        f"    def forward(self, {', '.join(drawn)}):\n{code}\n"
        f"def get_inputs():\n    return [{', '.join(drawn.values())}]\n"
        "def get_init_inputs():\n    return []\n"
    )
