"""For the baselines' server on a GPU: loads what `torch.compile` needs before it meets a graph."""

import torch

import sandbox.warm.kernels_cuda  # noqa: F401
from sandbox.warm.asking import nobody_asks

with nobody_asks():
    import torch._dynamo
    import torch._inductor.codegen.triton
    import torch._inductor.compile_fx
    import torch._inductor.graph

torch.set_num_threads(1)  # a server with a thread pool could not fork working children
