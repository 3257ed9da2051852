"""How long eager mode should take for a graph, from a machine's measured rates: good enough to place tasks.

Every aten node costs the larger of its arithmetic and its traffic, plus a launch. Arithmetic is counted in
equivalents of the machine's best multiply-adds. The equivalents were measured with torch 2.13 on two cores of an
AVX2 machine (best of several runs over 2 Mi elements, the time of an addition taken off, over the measured peak);
they are rounded, because machines differ by more than the second digit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

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
        "ceil round trunc frac hardtanh hardsigmoid hardswish leaky_relu _prelu_kernel hardshrink softshrink "
        "threshold logical_and logical_or logical_not bitwise_and bitwise_or bitwise_not lerp addcmul addcdiv "
        "nan_to_num copysign nextafter rsqrt deg2rad rad2deg sgn fill glu mse_loss",
        30: "sqrt exp2 smooth_l1_loss huber_loss eq ne lt le gt ge isnan isinf",
        90: "exp log log2 log10 log1p sigmoid silu gelu erf sin cos logit hypot",
        200: "expm1 tan sinh cosh asin acos atan atanh erfc erfinv floor_divide fmin fmax fmod remainder elu celu",
        300: "tanh softplus log_sigmoid_forward softsign atan2 logaddexp logaddexp2 xlogy special_entr "
        "special_bessel_j0 special_bessel_j1 binary_cross_entropy_with_logits soft_margin_loss",
        450: "where masked_fill pow acosh ldexp",
        900: "mish sinc special_ndtri",
        2000: "asinh lgamma digamma binary_cross_entropy",
        4000: "i0 special_i0e special_i1 special_i1e special_erfcx special_log_ndtr igamma igammac",
    }.items()
    for name in names.split()
}
"""Of one element of the result, by name of a pointwise operator."""
UNKNOWN_POINTWISE = 2000
PLAIN_POWER = 15
"""Of `pow` with one of these exponents."""
PLAIN_EXPONENTS = (2, 3, -1, -2, 0.5, -0.5, 1, 0)


class PerLine(NamedTuple):
    """What an operator along a dimension costs."""

    element: int
    """Of one element of its largest operand."""
    line: int
    """Of one reduced or normalised line, however short."""


PER_LINE: dict[str, PerLine] = {
    "_softmax": PerLine(95, 900), "_log_softmax": PerLine(95, 900), "native_layer_norm": PerLine(32, 2900),
    "native_group_norm": PerLine(32, 4000), "native_batch_norm": PerLine(195, 900), "sum": PerLine(10, 400),
    "mean": PerLine(10, 400), "amax": PerLine(10, 400), "amin": PerLine(10, 400), "nansum": PerLine(50, 400),
    "linalg_vector_norm": PerLine(12, 400), "prod": PerLine(15, 400), "max": PerLine(100, 1300),
    "min": PerLine(100, 1300), "argmax": PerLine(100, 1300), "argmin": PerLine(100, 1300), "std": PerLine(590, 8900),
    "var": PerLine(590, 8900), "var_mean": PerLine(590, 8900), "logsumexp": PerLine(130, 2000),
    "topk": PerLine(400, 4000), "median": PerLine(1400, 2000), "nanmedian": PerLine(1400, 2000),
    "kthvalue": PerLine(1200, 2000), "mode": PerLine(4500, 2000), "nll_loss_forward": PerLine(5, 240),
    "nll_loss2d_forward": PerLine(10, 400), "cumsum": PerLine(120, 0), "cumprod": PerLine(120, 0),
    "cummax": PerLine(300, 0), "cummin": PerLine(300, 0), "logcumsumexp": PerLine(3000, 0),
}  # fmt: skip
PER_PAIR = {"_cdist_forward": 6, "_euclidean_dist": 6, "_pdist_forward": 10, "multilabel_margin_loss_forward": 120}
"""Of one pair of coordinates, or of one class with another."""
PER_COMPARISON = 460
"""Of sorting one element, for each bit of the line's length."""
PER_RESULT_ELEMENT: dict[str, int] = {
    "clone": 330, "_to_copy": 60, "constant_pad_nd": 40, "cat": 40, "flip": 30, "roll": 20, "repeat": 60, "gather": 800,
    "index": 300, "index_select": 60, "embedding": 30, "scatter_add": 1000, "scatter": 150, "index_put": 600,
    "upsample_nearest1d": 1800, "upsample_nearest2d": 1800, "upsample_bilinear2d": 1800, "_adaptive_avg_pool2d": 1000,
    "reflection_pad1d": 60, "reflection_pad2d": 60, "replication_pad1d": 60, "replication_pad2d": 60,
    "pixel_shuffle": 200, "adaptive_max_pool2d": 2000, "native_channel_shuffle": 200,
}  # fmt: skip
"""Of one element of the result, for what moves data. A copy is only made where strides must change."""
PER_TAP = {"avg_pool1d": 190, "avg_pool2d": 190, "avg_pool3d": 190, "max_pool2d_with_indices": 300,
           "max_pool3d_with_indices": 300}  # fmt: skip
"""Of one element under a pooling window."""

CONVOLUTION = {False: 1.5, True: 4.0}
"""Of one floating-point operation of a convolution, plain or transposed."""

LARGE, HUGE = 4 << 20, 32 << 20
MANY = 4
FRESH_PAGES = 4
"""What a result costs in further copies where the C library gives its pages back when it is freed, to be zeroed and
faulted in anew: beyond `HUGE` bytes, and beyond `LARGE` ones where so `MANY` of them are alive."""


def eager_seconds(graph_module: fx.GraphModule, hardware: Hardware) -> float:
    """Expected seconds of one eager call of a graph from `stages.graph.trace.trace_eager` on that machine."""
    nodes = [node for node in operations(graph_module) if isinstance(node.target, torch._ops.OpOverload)]
    large = sum(nbytes(node) >= LARGE for node in nodes if not _is_free(node))
    fresh = LARGE if large >= MANY else HUGE
    return sum(_node_seconds(node, hardware, fresh) for node in nodes)


def can_estimate(aten_name: str) -> bool:
    """Whether an operator, given as `aten.add.Tensor`, has a cost here that is more than a guess."""
    name = aten_name.split(".")[1]
    return any(name in table for table in (PER_ELEMENT, PER_LINE, PER_RESULT_ELEMENT, PER_TAP, PER_PAIR, ("sort",)))


def _is_free(node: fx.Node) -> bool:
    assert isinstance(node.target, torch._ops.OpOverload)
    return node.target.is_view or node.target._opname in ("detach", "alias", "lift_fresh_copy")


def _node_seconds(node: fx.Node, hardware: Hardware, fresh: int) -> float:
    """Seconds of one node; results of at least `fresh` bytes are in fresh pages."""
    if _is_free(node):
        return hardware.launch_seconds
    written = nbytes(node)
    moved = written + sum(nbytes(operand) for operand in node.all_input_nodes)
    moved += FRESH_PAGES * written if written >= fresh else 0
    arithmetic = _equivalents(node) / hardware.flops_per_second
    return max(arithmetic, moved / hardware.copy_bytes_per_second) + hardware.launch_seconds


def _equivalents(node: fx.Node) -> float:
    """Arithmetic of a node in floating-point operations at the best rate."""
    target = node.target
    assert isinstance(target, torch._ops.OpOverload)
    name = target._opname.removesuffix("_")  # in place it costs the same
    written, read = _numel(node), max((_numel(operand) for operand in node.all_input_nodes), default=0)
    if name in PER_TAP:
        sizes, _ = windows(node)
        return PER_TAP[name] * written * math.prod(window.size for window in sizes)
    if name in PER_LINE:
        return PER_LINE[name].element * read + PER_LINE[name].line * _lines(node, name)
    if name == "sort":
        return PER_COMPARISON * math.log2(1 + _line_length(node)) * read
    if name == "pow" and len(node.args) > 1 and node.args[1] in PLAIN_EXPONENTS:
        return PLAIN_POWER * written
    if name == "convolution":
        return CONVOLUTION[bool(node.args[6])] * node_flops(node)
    if name in PER_PAIR:
        return (
            PER_PAIR[name] * (read if "loss" in name else written) * int(node.all_input_nodes[0].meta["val"].shape[-1])
        )
    if name in PER_RESULT_ELEMENT:
        return PER_RESULT_ELEMENT[name] * written
    if name in PER_ELEMENT or torch.Tag.pointwise in target.tags:
        return PER_ELEMENT.get(name, UNKNOWN_POINTWISE) * max(written, read if name.endswith("_loss") else 0)
    return node_flops(node) or 60 * max(written, read)


def _lines(node: fx.Node, name: str) -> float:
    """How many lines an operator along a dimension works on."""
    value = node.meta["val"]
    if name.startswith("native_"):
        return _elements(value[1])
    if name.endswith("softmax") or name.startswith(("cum", "logcum")):
        return _numel(node) / max(1, _line_length(node))
    return max(_numel(node), 1)


def _line_length(node: fx.Node) -> int:
    """Size of the dimension that a softmax, scan or sort works along; the last one where it does not say."""
    shape = node.all_input_nodes[0].meta["val"].shape
    dim = next((argument for argument in node.args[1:] if isinstance(argument, int)), -1)
    return int(shape[dim]) if len(shape) else 1


def _elements(value: object) -> int:
    return value.numel() if isinstance(value, torch.Tensor) else 0


def _numel(node: fx.Node) -> int:
    value = node.meta.get("val")
    return _elements(value[0] if isinstance(value, (list, tuple)) and value else value)
