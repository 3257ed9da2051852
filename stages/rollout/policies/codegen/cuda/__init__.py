"""Kernels as CUDA C++.

A team of threads works on one point of a nest's outer axes: one thread where neighbouring points lie side by side in
memory, else a warp or a block that walks the inner axes together. Scratch rows stand in shared memory.
"""
