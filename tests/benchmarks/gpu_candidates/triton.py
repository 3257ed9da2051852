"""Triton candidates: right ones, and ones that are right on some inputs, in some digits or for the first time only."""

from __future__ import annotations

from schemas.candidate import Language
from tests.benchmarks.gpu_candidates.base import Sample

WARPS = (8, 4, 16)
"""`@BLOCK@` is the number of warps where a program holds a whole row."""
HEAD = """\
import torch
import torch.nn as nn
import triton
import triton.language as tl

"""
CHAIN = (
    HEAD
    + """
@triton.jit
def chain_kernel_@N@(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < count
    value = tl.load(x_ptr + places, mask=inside) * 1.5 + tl.load(y_ptr + places, mask=inside)
    gelu = 0.5 * value * (1.0 + tl.math.erf(value * 0.7071067811865476))
    tl.store(out_ptr + places, @RESULT@, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        chain_kernel_@N@[(triton.cdiv(x.numel(), @BLOCK@),)](x, y, out, x.numel(), BLOCK=@BLOCK@)
        return out
"""
)
SOFTMAX = (
    HEAD
    + """
@triton.jit
def softmax_kernel_@N@(x_ptr, out_ptr, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * width
    columns = tl.arange(0, BLOCK)
    value = tl.load(x_ptr + row + columns, mask=columns < width, other=-float("inf")) * 0.5
    power = tl.exp(@SHIFTED@)
    tl.store(out_ptr + row + columns, power / tl.sum(power, axis=0), mask=columns < width)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[1])
        softmax_kernel_@N@[(x.shape[0],)](x, out, x.shape[1], BLOCK=block, num_warps=@BLOCK@)
        return out
"""
)
NORM = (
    HEAD
    + """
@triton.jit
def norm_kernel_@N@(x_ptr, y_ptr, gain_ptr, bias_ptr, out_ptr, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * width
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    value = tl.load(x_ptr + row + columns, mask=inside, other=0.0)
    value += tl.load(y_ptr + row + columns, mask=inside, other=0.0)
    mean = tl.sum(value, axis=0) / width
    off = tl.where(inside, value - mean, 0.0)
    variance = @VARIANCE@
    scale = 1.0 / tl.sqrt(variance + 1e-5)
    gain = tl.load(gain_ptr + columns, mask=inside)
    bias = tl.load(bias_ptr + columns, mask=inside)
    tl.store(out_ptr + row + columns, off * scale * gain + bias, mask=inside)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4096)

    def forward(self, x, y):
        out = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[1])
        norm_kernel_@N@[(x.shape[0],)](
            x, y, self.norm.weight, self.norm.bias, out, x.shape[1], BLOCK=block, num_warps=@BLOCK@
        )
        return out
"""
)
GATE = (
    HEAD
    + """
@triton.jit
def gate_kernel_@N@(x_ptr, y_ptr, gain_ptr, out_ptr, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * width
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    value = tl.load(x_ptr + row + columns, mask=inside, other=0.0)
    gate = tl.load(y_ptr + row + columns, mask=inside, other=0.0)
    scale = 1.0 / tl.sqrt(tl.sum(value * value, axis=0) / width + 1e-6)
    gain = tl.load(gain_ptr + columns, mask=inside)
    tl.store(out_ptr + row + columns, value * scale * gain * gate * tl.sigmoid(gate), mask=inside)


def launch(x, y, weight):
    out = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    gate_kernel_@N@[(x.shape[0],)](x, y, weight, out, x.shape[1], BLOCK=block, num_warps=@BLOCK@)
    return out


KEPT = {}


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4096))

    def forward(self, x, y):
@FORWARD@
"""
)
DIRECTLY = "        return launch(x, y, self.weight)"
REUSED = """\
        key = (x.data_ptr(), y.data_ptr(), float(x[0, 0]))
        if key not in KEPT:
            KEPT.clear()
            KEPT[key] = launch(x, y, self.weight)
        return KEPT[key]"""
ENERGY = (
    HEAD
    + """
@triton.jit
def energy_kernel_@N@(x_ptr, out_ptr, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * width
    columns = tl.arange(0, BLOCK)
    value = tl.load(x_ptr + row + columns, mask=columns < width - @LEFT@, other=0.0)
    total = tl.sum(value * value, axis=0)
    # log(1 + total) keeps its digits where total is small by a division that rounding errors cancel in
    raised = 1.0 + total
    result = tl.where(raised == 1.0, total, tl.log(raised) * (total / (raised - 1.0)))
    tl.store(out_ptr + tl.program_id(0), result)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        block = triton.next_power_of_2(x.shape[1])
        energy_kernel_@N@[(x.shape[0],)](x, out, x.shape[1], BLOCK=block, num_warps=@BLOCK@)
        return out
"""
)
ENTROPY = (
    HEAD
    + """
@triton.jit
def entropy_kernel_@N@(x_ptr, y_ptr, out_ptr, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * width
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    value = tl.load(x_ptr + row + columns, mask=inside, other=-float("inf"))
    target = tl.load(y_ptr + row + columns, mask=inside, other=0.0)
    largest = tl.max(value, axis=0)
    total = tl.sum(tl.exp(value - largest), axis=0)
    product = tl.sum(tl.where(inside, value * target, 0.0), axis=0)
    tl.store(out_ptr + tl.program_id(0), largest + tl.log(total) - product)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        block = triton.next_power_of_2(x.shape[1])
        entropy_kernel_@N@[(x.shape[0],)](x, y, out, x.shape[1], BLOCK=block, num_warps=@BLOCK@)
        return out
"""
)
LINEAR = (
    HEAD
    + """
@triton.jit
def linear_kernel_@N@(x_ptr, w_ptr, bias_ptr, out_ptr, rows, width, features,
                      M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m = tl.program_id(0) * M + tl.arange(0, M)
    n = tl.program_id(1) * N + tl.arange(0, N)
    k = tl.arange(0, K)
    total = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, width, K):
        here = start + k < width
        left = tl.load(x_ptr + m[:, None] * width + (start + k)[None, :],
                       mask=(m < rows)[:, None] & here[None, :], other=0.0)
        right = tl.load(w_ptr + n[None, :] * width + (start + k)[:, None],
                        mask=here[:, None] & (n < features)[None, :], other=0.0)
        total = tl.dot(left, right, total, input_precision="@PRECISION@")
    value = total + tl.load(bias_ptr + n, mask=n < features)[None, :]
    gelu = 0.5 * value * (1.0 + tl.math.erf(value * 0.7071067811865476))
    tl.store(out_ptr + m[:, None] * features + n[None, :], gelu, mask=(m < rows)[:, None] & (n < features)[None, :])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2048, 4096)

    def forward(self, x):
        rows, width, features = x.shape[0], x.shape[1], self.linear.weight.shape[0]
        out = torch.empty(rows, features, device=x.device, dtype=x.dtype)
        grid = (triton.cdiv(rows, 64), triton.cdiv(features, @BLOCK@))
        linear_kernel_@N@[grid](
            x, self.linear.weight, self.linear.bias, out, rows, width, features, M=64, N=@BLOCK@, K=32
        )
        return out
"""
)


def _sample(
    name: str, task: str, text: str, planted: str = "", *, right: bool | None = None, blocks: tuple[int, ...] = WARPS
) -> Sample:
    return Sample(name, task, Language.TRITON, not planted if right is None else right, planted, text, blocks)


CLAMPED = CHAIN.replace("@RESULT@", "tl.minimum(tl.maximum(gelu, -0.1), 3.0)")
UNCLAMPED = CHAIN.replace("@RESULT@", "gelu")
TWO_PASSES = "tl.sum(off * off, axis=0) / width"
ONE_PASS = "tl.sum(value * value, axis=0) / width - mean * mean"
LINES = (1024, 512, 2048, 4096)

TRITON = (
    _sample("chain_triton", "gelu_chain", CLAMPED, blocks=LINES),
    _sample(
        "unclamped_triton", "gelu_chain", UNCLAMPED, "no clamp, which inputs in [0, 1) never reach", blocks=LINES
    ),
    _sample("softmax_triton", "softmax", SOFTMAX.replace("@SHIFTED@", "value - tl.max(value, axis=0)")),
    _sample(
        "unshifted_triton", "softmax", SOFTMAX.replace("@SHIFTED@", "value"),
        "no maximum is taken off, so large inputs overflow",
    ),
    _sample("norm_triton", "layer_norm", NORM.replace("@VARIANCE@", TWO_PASSES)),
    _sample(
        "one_pass_norm_triton", "layer_norm", NORM.replace("@VARIANCE@", ONE_PASS),
        "the variance is a difference of large numbers where rows have an offset",
    ),
    _sample("gate_triton", "rms_gate", GATE.replace("@FORWARD@", DIRECTLY)),
    _sample(
        "tail_triton", "row_energy", ENERGY.replace("@LEFT@", "1"), "the last column is left out of 8192",
    ),
    _sample("entropy_triton", "soft_cross_entropy", ENTROPY),
    _sample(
        "tf32_triton", "linear_gelu", LINEAR.replace("@PRECISION@", "tf32"),
        "TF32 products for a float32 reference", blocks=(64, 128),
    ),
    _sample("linear_triton", "linear_gelu", LINEAR.replace("@PRECISION@", "ieee"), blocks=(64, 128)),
    _sample(
        "reuse_triton", "rms_gate", GATE.replace("@FORWARD@", REUSED),
        "keeps its last result by address and first value, which helps only where timed inputs repeat", right=True,
    ),
)  # fmt: skip
"""Right and wrong in turn."""
