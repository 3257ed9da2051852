"""C++ with OpenMP for CPUs: kernels written down as loops that the compiler vectorises.

- `vector_math.py`: branch-free exp, log, tanh, ... that vectorise
- `text.py`, `scope.py`: expressions as text, statements in nested loops
- `loops.py`, `folds.py`, `fold_loops.py`, `scans.py`: the loops
- `kernel.py`, `module.py`: a kernel as a function, the binding and the `ModelNew` around it
"""
