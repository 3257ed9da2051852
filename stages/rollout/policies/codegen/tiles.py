"""Transposing loops, in tiles: what is read along one axis and written along another goes through a small square.

Rows of the tile are read as they lie in memory into scratch; the computation then walks the scratch the other way.
"""

from __future__ import annotations

from dataclasses import replace

from schemas.tensor import Dtype
from stages.rollout.policies.codegen import index as ix
from stages.rollout.policies.codegen.expr import Expr, rewrite
from stages.rollout.policies.codegen.index import Axis
from stages.rollout.policies.codegen.ir import Stage, Tensor
from stages.rollout.policies.codegen.nest import Item, Nest
from stages.rollout.policies.codegen.plan import Cut, Kernel, Loop, Scratch, Work

HEIGHT, WIDTH = 32, 64
"""Tile edges: 8 KiB of scratch; both sides' cache lines are used whole."""


def tiled(nest: Nest, lane: Axis, across: Axis) -> Kernel:
    """The kernel of a pointwise nest that writes along `lane` and reads along `across`."""
    cuts = (Cut(across, min(HEIGHT, across.extent)), Cut(lane, min(WIDTH, lane.extent)))
    width = cuts[1].length
    staged: dict[Expr, Work] = {}

    def visit(node: Expr) -> Expr | None:
        if not _crosses(node, lane, across):
            return None
        if node not in staged:
            staged[node] = _staging(node, f"{node.name}_tile{len(staged) + 1}", across, lane, width)
        work = staged[node]
        return Expr("local", node.dtype, name=work.name, index=work.local)

    items = [replace(item, domain=(across,), value=rewrite(item.value, visit)) for item in nest.items]
    works = [Work(item, None, written=True) for item in items]
    scratch = tuple(Scratch(work.name, cuts[0].length * width, work.item.value.dtype) for work in staged.values())
    loops = [Loop((work,), (lane, across)) for work in staged.values()] + [Loop(tuple(works), (across,))]
    outer = tuple(axis for axis in nest.outer if axis not in (lane, across))
    kept = tuple(cut for cut in cuts if cut.strips > 1)
    return Kernel(outer, lane, kept, tuple(loops), scratch)


def _crosses(node: Expr, lane: Axis, across: Axis) -> bool:
    if node.op != "load" or node.index is None or node.args:
        return False
    step = node.index.coefficient(lane)
    return node.index.coefficient(across) == 1 and step is not None and abs(step) > 1


def _staging(node: Expr, name: str, across: Axis, lane: Axis, width: int) -> Work:
    dtype: Dtype = node.dtype
    stage = Stage(Tensor(name, (), dtype), (), (), node, None, f"a tile of {node.name}, read along its rows")
    place = ix.of(across) * width + ix.of(lane)
    return Work(Item(stage, (across,), frozenset(), None, node, ix.constant(0)), place, written=False)
