"""From nest to kernel on a GPU: which threads work together on a point of the outer axes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from stages.rollout.policies.codegen.arrange import merged, merged_outer, placed, remerged, scratch_of
from stages.rollout.policies.codegen.choices import Choices, Reuse
from stages.rollout.policies.codegen.lanes import lane_axis
from stages.rollout.policies.codegen.nest import Nest
from stages.rollout.policies.codegen.plan import Kernel
from stages.rollout.policies.codegen.reuse import aligned, tapped
from stages.rollout.policies.codegen.sharing import shared_loops, trimmed

SHARED_BYTES = 40 << 10
"""Scratch of a block: leaves room for a second block on the multiprocessor, and for the folds' own."""
OWN_BYTES = 128
"""Scratch of one thread that still stands in registers."""
WARP = 32
SHORT_ROW = 1024
"""Elements up to which a warp is enough for a row."""
LONG_ROW = 8192


class Team(NamedTuple):
    """Threads that share a point."""

    threads: int
    """1, a warp, or a multiple of it."""
    block: int
    """Threads of a block."""

    @property
    def points(self) -> int:
        """Points of a block."""
        return self.block // self.threads


def in_teams(nest: Nest, needed: frozenset[str], choices: Choices) -> tuple[Kernel, Team]:
    """The kernel of a nest and its team; `needed` names the tensors that are read outside of it."""
    nest = merged_outer(nest)
    nest = replace(nest, items=tuple(merged(item) for item in nest.items))
    lane = lane_axis(nest)
    volume = max(item.volume for item in nest.items)
    alone = volume == 1 or lane is not None
    kernel = _kernel(nest, needed, choices, OWN_BYTES if alone else SHARED_BYTES)
    if alone:
        outer = [axis for axis in kernel.outer if axis != lane] + ([lane] if lane is not None else [])
        return replace(kernel, outer=tuple(outer)), Team(1, choices.block)
    threads = choices.team or (WARP if volume <= SHORT_ROW else 256 if volume <= LONG_ROW else 512)
    if threads > WARP:
        return kernel, Team(threads, threads)
    return _kernel(nest, needed, choices, SHARED_BYTES * WARP // choices.block), Team(WARP, choices.block)


def _kernel(nest: Nest, needed: frozenset[str], choices: Choices, room: int) -> Kernel:
    works = placed(nest, needed, 1, room)
    if choices.reuse is Reuse.KEEP:
        held = sum(4 * math.prod(axis.extent for axis in work.item.kept) for work in works if work.local is not None)
        works = tapped(aligned(works), max(0, room - held) // 4)
    works = [remerged(work) for work in works]
    loops = trimmed(shared_loops(works, with_lanes=False))
    return Kernel(nest.outer, None, (), loops, scratch_of(loops, 1))
