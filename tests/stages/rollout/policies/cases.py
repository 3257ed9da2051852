"""Small models, one for each thing that the generator has to get right. Names say what would break."""

from __future__ import annotations

TEMPLATE = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x, y):
        return {body}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


def model(body: str, init: str = "pass", x: str = "48, 96", y: str | None = None) -> str:
    """A task's source: `forward(x, y)` returns `body` of normal tensors of the shapes `x` and `y`."""
    inputs = f"torch.randn({x}), torch.randn({y or x})"
    return TEMPLATE.format(init=init, body=body, inputs=inputs)


def indexed(body: str, x: str, index: str, bound: int, init: str = "pass") -> str:
    """The same where `y` holds integers below `bound`."""
    inputs = f"torch.randn({x}), torch.randint(0, {bound}, ({index},))"
    return TEMPLATE.format(init=init, body=body, inputs=inputs)


CASES = {
    "gelu_layer_norm_add": model("self.ln(F.gelu(x)) + y", "self.ln = nn.LayerNorm(96)"),
    "softmax": model("torch.softmax(x * 2 + y, -1)"),
    "softmax_of_channels": model("torch.softmax(x, 1) * y", x="4, 16, 8, 8"),
    "log_softmax_of_rows_across": model("F.log_softmax(x, 0) + y"),
    "rms_norm": model("F.rms_norm(x, (96,)) * y"),
    "group_norm": model("self.gn(x).relu() + y", "self.gn = nn.GroupNorm(4, 16)", x="4, 16, 7, 9"),
    "instance_norm": model("F.instance_norm(x) + y", x="4, 16, 7, 9"),
    "batch_norm_of_running_statistics": model(
        "self.bn(x) * torch.sigmoid(y)", "self.bn = nn.BatchNorm2d(16).eval()", x="4, 16, 7, 9"
    ),
    "mean_of_columns": model("(x * y).mean(0)", x="1000, 300"),
    "mean_of_the_middle": model("(x * y).mean(1)", x="8, 500, 70"),
    "standardise_everything": model("(x - x.mean()) / x.std() + y", x="300, 400"),
    "mse": model("F.mse_loss(x, y)", x="300, 401"),
    "huber": model("F.huber_loss(x, y)", x="300, 401"),
    "kl_divergence": model("F.kl_div(F.log_softmax(x, -1), F.softmax(y, -1), reduction='batchmean')", x="300, 100"),
    "broadcast_in_the_middle": model("x[:, None, :] * y[None, :, :] + 1", x="20, 33", y="30, 33"),
    "outer_difference": model("x[:, None] - y[None, :]", x="200", y="130"),
    "transposed_pointwise": model("torch.tanh(x.permute(0, 2, 1)) + y", x="5, 40, 60", y="5, 60, 40"),
    "softmax_of_a_transpose": model("torch.softmax(x.t(), -1) + y", x="40, 60", y="60, 40"),
    "pools_side_by_side": model("F.max_pool2d(F.relu(x), 2) + F.avg_pool2d(y, 2)", x="4, 8, 12, 16"),
    "overlapping_max_pool": model("F.max_pool2d(x, 3, 2, 1) * F.max_pool2d(y, 3, 2, 1)", x="4, 8, 13, 17"),
    "padded_average": model("F.avg_pool2d(x, 3, 1, 1) + y", x="4, 8, 13, 17"),
    "average_without_padding": model(
        "F.avg_pool2d(x, 3, 2, 1, count_include_pad=False) + F.avg_pool2d(y, 3, 2, 1, ceil_mode=False)",
        x="4, 8, 13, 17",
    ),
    "average_in_one_dimension": model("F.avg_pool1d(x, 5, 1, 2) + y", x="4, 8, 50"),
    "adaptive_even": model("F.adaptive_avg_pool2d(x * y, (4, 4))", x="4, 8, 12, 16"),
    "adaptive_to_one": model("F.adaptive_avg_pool2d(F.silu(x), 1) + y.mean((2, 3), keepdim=True)", x="4, 8, 12, 16"),
    "windows_too_large_to_write_out": model("F.avg_pool2d(x, 8) + F.max_pool2d(y, 8)", x="2, 4, 32, 32"),
    "cat": model("torch.cat([x, y * 2], 1).relu()", x="20, 30"),
    "softmax_of_a_cat": model("torch.softmax(torch.cat([x, y], -1), -1)", x="20, 30"),
    "slice": model("x[:, 2:50] * y[:, -48:]"),
    "chunk_glu": model("F.glu(x, -1) + y[:, :48]"),
    "split_in_three": model("sum((c * k for k, c in enumerate(x.chunk(3, 1), 1))) + y[:, :32]"),
    "roll": model("torch.roll(x, 3, 1) + torch.roll(y, -2, 0)"),
    "flip": model("x.flip(1) * y.flip(0)"),
    "pad": model("F.pad(x, (1, 2, 3, 1)) * 2", x="6, 7, 8"),
    "reflection_pad": model("F.pad(x, (2, 2, 1, 1), mode='reflect') + 1", x="3, 4, 8, 9"),
    "pixel_shuffle": model("F.pixel_shuffle(x, 2) + F.pixel_shuffle(y, 2)", x="2, 8, 5, 6"),
    "pixel_unshuffle": model("F.pixel_unshuffle(x, 2) * 2", x="2, 8, 6, 6"),
    "nearest_upsample": model("F.interpolate(x, scale_factor=2) + 1", x="2, 3, 5, 6"),
    "cumsum": model("torch.cumsum(x, -1) + y"),
    "cumsum_across": model("torch.cumsum(x * y, 0)"),
    "cumprod": model("torch.cumprod(x * 0.1 + 1, -1) * y"),
    "argmax": model("x.argmax(-1) + y.argmin(-1)"),
    "argmax_across": model("x.argmax(0)"),
    "max_values": model("x.max(1).values + y.min(1).values"),
    "max_values_and_places": model("x.max(1)[0] * x.max(1)[1]"),
    "extremes_across": model("x.amax(0) - y.amin(0)"),
    "product": model("(x * 0.1 + 1).prod(-1)"),
    "any_and_all": model("((x > 2).any(-1) | (y > -3).all(-1)).float()"),
    "normalize": model("F.normalize(x, dim=-1) * y"),
    "norms_of_other_orders": model("x.norm(p=1, dim=0) + y.norm(p=3, dim=0)"),
    "norm_of_everything": model("x / torch.linalg.norm(x) + y"),
    "logsumexp": model("torch.logsumexp(x, -1) + y.sum(-1)"),
    "cosine_similarity": model("F.cosine_similarity(x, y)"),
    "activations": model(
        "F.elu(x) + F.softplus(y) + F.mish(x) + F.hardswish(y) + F.leaky_relu(x) + F.silu(y) + F.selu(x) "
        "+ F.celu(y) + F.hardtanh(x) + F.relu6(y) + F.logsigmoid(x) + F.softsign(y) + F.tanhshrink(x) + "
        "F.hardshrink(y) + F.softshrink(x) + F.hardsigmoid(y)",
    ),
    "elementary_functions": model(
        "torch.sin(x) * torch.cos(y) + torch.exp(-x.abs()) + torch.log1p(y.abs()) + torch.sqrt(x.abs()) +"
        " torch.rsqrt(y * y + 1) + torch.erf(x) + torch.expm1(y) + torch.atan(x) + torch.exp2(y) + "
        "torch.log2(x * x + 1)",
    ),
    "powers": model("x ** 2 + y ** 3 + (x.abs() + 0.1) ** 0.5 + (y.abs() + 0.5) ** 1.7 + (x.abs() + 1) ** (-1)"),
    "comparisons": model(
        "torch.where(x > y, x, y * 2) + (x == y).float() + torch.maximum(x, y) + torch.clamp(x, -1, 1) + torch.sign(y)"
    ),
    "other_pointwise": model(
        "torch.addcmul(x, x, y, value=0.5) + torch.lerp(x, y, 0.3) + torch.fmod(x, 0.7) + "
        "torch.remainder(y, 0.6) + torch.floor(x) + torch.round(y) + torch.frac(x) + torch.hypot(x, y) + "
        "torch.atan2(x, y) + torch.copysign(x, y) + torch.logaddexp(x, y)",
    ),
    "triangles": model("torch.tril(x) + torch.triu(y)", x="40, 40"),
    "causal_softmax": model(
        "torch.softmax((x + y).masked_fill(torch.triu(torch.ones(40, 40, dtype=torch.bool), 1), float('-inf')), -1)",
        x="3, 40, 40",
    ),
    "linear_gelu_around_the_library": model("F.gelu(self.fc(x)) + y", "self.fc = nn.Linear(96, 96)"),
    "linear_between_own_kernels": model(
        "self.ln(self.fc(x) + x).softmax(-1) * y", "self.fc = nn.Linear(96, 96); self.ln = nn.LayerNorm(96)"
    ),
    "convolution_by_the_library": model(
        "F.relu(self.c(x)) + y", "self.c = nn.Conv2d(8, 8, 3, padding=1)", x="2, 8, 12, 12"
    ),
    "attention": model("F.scaled_dot_product_attention(x, y, y)", x="2, 4, 16, 8"),
    "several_outputs": model("(lambda h: (self.ln(h), h, h.mean(-1)))(x + y)", "self.ln = nn.LayerNorm(96)"),
    "group_norm_then_pool": model(
        "F.avg_pool2d(F.silu(self.gn(x)), 2) + F.adaptive_max_pool2d(y, (3, 4))",
        "self.gn = nn.GroupNorm(4, 16)",
        x="4, 16, 6, 8",
    ),
    "layer_norm_then_mean": model("self.ln(x).mean(1) * y.sum(1)", "self.ln = nn.LayerNorm(32)", x="4, 50, 32"),
    "softmax_then_variance_across": model("torch.softmax(x, -1).var(0) + y[0]", x="40, 30"),
    "local_response_norm": model("F.local_response_norm(x, 5) * y", x="2, 8, 6, 6"),
    "pairwise_distances_by_broadcast": model(
        "((x[:, None, :] - y[None, :, :]) ** 2).sum(-1).sqrt()", x="20, 33", y="30, 33"
    ),
    "unfold_patches": model("F.unfold(x, 2).softmax(1)", x="2, 3, 6, 6"),
    "power_average_pool": model("F.lp_pool2d(x.abs() + 0.1, 2, 2)", x="2, 3, 6, 6"),
    "sort_by_the_library": model("torch.sort(x, -1)[0] * y"),
    "bilinear_upsample": model("F.interpolate(x, scale_factor=2, mode='bilinear') + 1", x="2, 3, 5, 6"),
    "channel_gate": model("x * x.mean((2, 3), keepdim=True).sigmoid() + y", x="4, 8, 9, 9"),
    "rotary_embedding": model(
        "torch.cat([-x[..., 16:], x[..., :16]], -1) * y.sin() + x * y.cos()", x="2, 4, 10, 32", y="10, 32"
    ),
    "gated_gelu": model("(lambda a, b: a * F.gelu(b))(*x.chunk(2, -1)) + y[..., :48]"),
    "std_and_mean": model("sum(torch.std_mean(x, -1)) + y.var(-1, unbiased=False)"),
    "einsum": model("torch.einsum('bij,bjk->bik', x, y).relu()", x="3, 16, 16"),
    "trace_and_diagonal": model("torch.trace(x) + y.diagonal().sum()", x="40, 40"),
    "stack": model("torch.stack([x, y], -1).flatten(1) * 2"),
    "repeat": model("x.repeat(2, 3) + y.repeat_interleave(2, 0).repeat(1, 3)", x="6, 7"),
    "adaptive_uneven": model(
        "F.adaptive_avg_pool2d(x.relu(), (5, 3)) + F.adaptive_max_pool2d(y, (5, 3))", x="2, 3, 13, 8"
    ),
    "dist": model("torch.dist(x, y, 2) + torch.dist(x, y, 1)"),
    "resampling_by_fractions": model(
        "F.interpolate(x, size=(11, 9), mode='bilinear', align_corners=True) + F.interpolate(y, size=(11,"
        " 9), mode='nearest')",
        x="2, 3, 5, 6",
    ),
    "bicubic_upsample": model("F.interpolate(x, scale_factor=2, mode='bicubic')", x="2, 3, 5, 6"),
    "copies_of_views": model("torch.view_copy(x, (96, 48)) + torch.permute_copy(y, (1, 0))"),
    "baddbmm": model("torch.baddbmm(x, y, x) * 2", x="3, 16, 16"),
    "trilinear_upsample": model("F.interpolate(x, scale_factor=2, mode='trilinear')", x="2, 3, 4, 5, 6"),
    "linear_upsample": model("F.interpolate(x, scale_factor=2, mode='linear') * 2", x="2, 3, 40"),
    "grid_sample": model("F.grid_sample(x, torch.tanh(y), align_corners=False)", x="2, 3, 8, 8", y="2, 5, 6, 2"),
    "softmax_of_masked_rows": model(
        "torch.where(y > 0, x, torch.full_like(x, float('-inf'))).softmax(-1).nan_to_num(0.0)"
    ),
    "extremes_keep_nan": model("torch.log(x).amax(-1).nan_to_num(-5.0) + torch.sqrt(y).amin(-1).nan_to_num(7.0)"),
    "counts": model("(x > 0).sum(-1) + (y > 0).sum(-1)"),
    "deep_chain_of_shared_values": model(
        "(lambda f: f(f(f(f(f(f(x)))))))(lambda z: z * torch.sigmoid(z) + 0.1 * z) + y"
    ),
    "group_norm_then_softmax": model("F.group_norm(x, 4).softmax(1) + y", x="4, 16, 6, 5"),
    "layer_norm_over_three_dimensions": model("F.layer_norm(x, (16, 6, 5)) * torch.tanh(y)", x="4, 16, 6, 5"),
    "standardise_over_two_dimensions": model(
        "(x - x.mean((0, 2), keepdim=True)) / (x.std((0, 2), keepdim=True) + 1e-05) + y", x="6, 7, 40"
    ),
    "pairwise_distance": model("F.pairwise_distance(x, y)"),
    "triplet_loss": model("F.triplet_margin_loss(x, y, x + 0.5)"),
    "binary_cross_entropy": model("F.binary_cross_entropy_with_logits(x, torch.sigmoid(y))"),
    "cumsum_of_the_middle": model("torch.cumsum(F.gelu(x), 1) * y", x="5, 40, 30"),
    "sum_of_a_short_row": model("(x * y).sum(-1)", x="500, 30, 3"),
    "rows_larger_than_scratch": model("torch.softmax(x, -1) * y", x="4, 70000"),
    "rows_of_a_prime_length": model("F.layer_norm(x * 1.5, (997,)) + y", x="31, 997"),
    "permuted_sums_of_rank_five": model(
        "x.permute(0, 4, 1, 2, 3).contiguous().sum(2) + y.sum(1).permute(0, 3, 1, 2)", x="2, 3, 4, 5, 6"
    ),
    "reshape_of_a_transpose": model(
        "x.transpose(1, 2).reshape(4, -1) * y.transpose(1, 2).reshape(4, -1).sigmoid()", x="4, 6, 10"
    ),
    "sum_of_softmaxes": model("x.view(4, 12, 2, 48).transpose(1, 2).softmax(-1).sum(2)"),
    "embedding_layer_norm": indexed(
        "self.norm(self.table(y)) + x",
        "7, 20, 64",
        "7, 20",
        50,
        "self.table = nn.Embedding(50, 64); self.norm = nn.LayerNorm(64)",
    ),
    "cross_entropy": indexed("F.cross_entropy(x, y)", "70, 30", "70", 30),
    "cross_entropy_smoothed": indexed("F.cross_entropy(x, y, label_smoothing=0.1)", "7, 30, 9", "7, 9", 30),
    "gather_of_log_softmax": indexed(
        "torch.gather(F.log_softmax(x, -1), 1, y), x.index_select(1, y[0])", "70, 30", "70, 5", 30
    ),
}
