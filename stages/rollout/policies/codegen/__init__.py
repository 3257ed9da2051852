"""The kernel generator behind the embedded policies: aten graph in, kernels out.

- `trace.py`, `lower/`: a task's source as a graph, the graph as a program of stages and library calls (`ir.py`)
- `index.py`, `expr.py`: where a loop iteration reads and what it computes
- `fuse.py`, `nest.py`: which stages share a parallel loop
- `arrange.py` with `lanes.py`, `reuse.py`, `sharing.py`, `tiles.py`: the loops inside, as a `plan.Kernel`
- `choices.py`: what a schedule may choose
- `cpp/`: kernels as C++ with OpenMP; another target replaces this folder only
- `generate.py`: all of it, from a task's source to a candidate
"""
