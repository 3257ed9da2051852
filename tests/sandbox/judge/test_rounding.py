"""If these fail, an honest kernel is refused for its order of summation, or a budget is wide where nothing rounds."""

from __future__ import annotations

import pytest
import torch

from sandbox.judge.contents import Source
from sandbox.judge.rounding import ULP, Rounding

SOURCE = Source(7)


def _moved(module, *inputs: torch.Tensor) -> torch.Tensor:
    wide = [value.double() for value in inputs]
    with torch.no_grad():
        truth = module(*wide)
        (moved,) = Rounding(lambda *x: (module(*x),), wide, SOURCE).run(wide)
    return (moved - truth).abs() / truth.abs().clamp_min(1e-30)


@pytest.mark.parametrize(
    "module",
    [
        lambda x: torch.relu(x).t().reshape(-1),
        lambda x: torch.maximum(x, x.flip(0)).neg(),
        lambda x: torch.cat([x, x[:, :3]], 1).amax(1),
    ],
)
def test_what_does_not_round_is_not_moved(module):
    assert float(_moved(module, torch.randn(32, 48, generator=torch.Generator().manual_seed(1))).max()) == 0.0


def test_one_step_moves_by_an_ulp_and_a_sum_by_two():
    x = torch.rand(64, 256, generator=torch.Generator().manual_seed(1)) + 0.5
    assert 0.2 * ULP < float(_moved(torch.tanh, x).max()) <= 1.6 * ULP
    assert 0.2 * ULP < float(_moved(lambda v: v.sum(1), x).max()) <= 2.6 * ULP


def test_a_mean_that_is_exact_by_luck_is_moved_and_what_follows_magnifies_it():
    rows = torch.randn(64, 1, generator=torch.Generator().manual_seed(1)).expand(64, 128).contiguous()
    norm = torch.nn.LayerNorm(128).double()
    wide = rows.double()
    with torch.no_grad():
        (moved,) = Rounding(lambda x: (norm(x),), [wide], SOURCE).run([wide])
        assert float(norm(wide).abs().max()) == 0.0
    assert 1e-6 < float(moved.abs().max()) < 1e-2
