"""How long eager mode should take for a graph, from a machine's measured rates: good enough to place tasks.

Every aten node costs the larger of its arithmetic and its traffic, plus a launch. Arithmetic is counted in
equivalents of the machine's best multiply-adds. The equivalents were measured with torch 2.13 on two cores of an
AVX2 machine (best of several runs over 2 Mi elements, the time of an addition taken off, over the measured peak);
they are rounded, because machines differ by more than the second digit.
"""

from __future__ import annotations

import math

import torch
from torch import fx

from schemas.hardware import Hardware
from stages.graph.trace import operations
from stages.graph.windows import windows
from stages.graph.work import nbytes, node_flops

PER_ELEMENT: dict[str, int] = {
    name: cost
    for cost, names in {
        1: "add sub mul div rsub neg abs relu maximum minimum clamp clamp_min clamp_max reciprocal square sign floor "
        "ceil round trunc frac hardtanh hardsigmoid hardswish elu leaky_relu _prelu_kernel hardshrink softshrink "
        "threshold eq ne lt le gt ge isnan isinf logical_and logical_or logical_not bitwise_and bitwise_or bitwise_not "
        "lerp addcmul addcdiv masked_fill nan_to_num copysign nextafter rsqrt deg2rad rad2deg sgn fill glu",
        30: "sqrt exp2 mse_loss smooth_l1_loss huber_loss",
        100: "exp log log2 log10 log1p sigmoid silu gelu erf sin cos celu selu logit fmod remainder hypot",
        200: "expm1 tan sinh cosh asin acos atan atanh erfc erfinv floor_divide fmin fmax",
        300: "tanh softplus log_sigmoid_forward softsign atan2 logaddexp logaddexp2 where xlogy special_entr "
        "special_bessel_j0 special_bessel_j1",
        600: "mish pow acosh sinc ldexp soft_margin_loss special_ndtri",
        2000: "asinh lgamma digamma binary_cross_entropy",
        4000: "i0 special_i0e special_i1 special_i1e special_erfcx special_log_ndtr igamma igammac",
    }.items()
    for name in names.split()
}
"""Of one element of the result, by name of a pointwise operator."""
UNKNOWN_POINTWISE = 2000

PER_INPUT_ELEMENT: dict[str, int] = {
    "_softmax": 120, "_log_softmax": 130, "native_layer_norm": 130, "native_group_norm": 50, "native_batch_norm": 200,
    "sum": 10, "mean": 10, "amax": 10, "amin": 10, "linalg_vector_norm": 15, "prod": 20, "max": 250, "min": 250,
    "argmax": 200, "argmin": 200, "std": 580, "var": 580, "var_mean": 580, "logsumexp": 180, "cumsum": 300,
    "cumprod": 300, "cummax": 300, "cummin": 300, "logcumsumexp": 3000, "sort": 5000, "topk": 400,
    "median": 1400, "nanmedian": 1400, "kthvalue": 1200, "mode": 4500, "_cdist_forward": 200, "nansum": 100,
}  # fmt: skip
"""Of one element of the largest operand."""
PER_RESULT_ELEMENT: dict[str, int] = {
    "clone": 330, "_to_copy": 60, "constant_pad_nd": 40, "cat": 40, "flip": 30, "roll": 20, "repeat": 60, "gather": 150,
    "index": 300, "index_select": 60, "embedding": 30, "scatter_add": 1000, "scatter": 400, "index_put": 600,
    "upsample_nearest1d": 1800, "upsample_nearest2d": 1800, "upsample_bilinear2d": 1800, "_adaptive_avg_pool2d": 1000,
    "reflection_pad1d": 60, "reflection_pad2d": 60, "replication_pad1d": 60, "replication_pad2d": 60,
    "pixel_shuffle": 200, "adaptive_max_pool2d": 2000, "native_channel_shuffle": 200,
}  # fmt: skip
"""Of one element of the result, for what moves data. A copy is only made where strides must change."""
PER_TAP = {"avg_pool1d": 190, "avg_pool2d": 190, "avg_pool3d": 190, "max_pool2d_with_indices": 500,
           "max_pool3d_with_indices": 500}  # fmt: skip
"""Of one element under a pooling window."""

LARGE_ALLOCATION = 32 << 20
"""Bytes from which the C library maps a result afresh every time, and its pages are zeroed and faulted in anew."""
FRESH_PAGE_COPIES = 6
"""What that costs, in copies of the same size."""


def eager_seconds(graph_module: fx.GraphModule, hardware: Hardware) -> float:
    """Expected seconds of one eager call of a graph from `stages.graph.trace.trace_eager` on that machine."""
    return sum(_node_seconds(node, hardware) for node in operations(graph_module))


def _node_seconds(node: fx.Node, hardware: Hardware) -> float:
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return 0.0
    if target.is_view or target._opname in ("detach", "alias", "lift_fresh_copy"):
        return hardware.launch_seconds
    written = nbytes(node)
    moved = written + sum(nbytes(operand) for operand in node.all_input_nodes)
    if written >= LARGE_ALLOCATION:
        moved += FRESH_PAGE_COPIES * written
    arithmetic = _equivalents(node, target) / hardware.flops_per_second
    return max(arithmetic, moved / hardware.copy_bytes_per_second) + hardware.launch_seconds


def _equivalents(node: fx.Node, target: torch._ops.OpOverload) -> float:
    """Arithmetic of a node in floating-point operations at the best rate."""
    name = target._opname
    written, read = _numel(node), max((_numel(operand) for operand in node.all_input_nodes), default=0)
    if name in PER_TAP:
        sizes, _ = windows(node)
        return PER_TAP[name] * written * math.prod(window.size for window in sizes)
    if name in PER_INPUT_ELEMENT:
        return PER_INPUT_ELEMENT[name] * read
    if name in PER_RESULT_ELEMENT:
        return PER_RESULT_ELEMENT[name] * written
    if name in PER_ELEMENT or torch.Tag.pointwise in target.tags:
        return PER_ELEMENT.get(name, UNKNOWN_POINTWISE) * max(written, read if name.endswith("_loss") else 0)
    return node_flops(node) or 60 * max(written, read)


def _numel(node: fx.Node) -> int:
    value = node.meta.get("val")
    first = value[0] if isinstance(value, (list, tuple)) and value else value
    return first.numel() if isinstance(first, torch.Tensor) else 0
