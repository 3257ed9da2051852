"""How long an empty block takes, from the judge to the runner and back, and what that means for short kernels.

Run it with `python -m tests.benchmarks.hand_over --device cuda` (or `cpu`).
"""

from __future__ import annotations

import statistics

from sandbox.judge.profile import LAUNCH_BOUND_SECONDS
from schemas.parameters import JudgeParameters
from tests.benchmarks.gpu_candidates import task
from tests.benchmarks.machine import arguments, describe, save, station

BATCHES = 40
TIMES = 50
"""Empty blocks of one batch, whose median is one sample."""


def main() -> None:
    """Print the median and the spread of the round trip."""
    options = arguments(__doc__).parse_args()
    with station(options.device, JudgeParameters()) as here:
        hardware = here.judge.hardware
        bench = here.judge.bench(task("gelu_chain", small=True))
        host = bench.baseline("eager")
        host.hand_over(TIMES)
        seconds = sorted(host.hand_over(TIMES) for _ in range(BATCHES))
        slots = bench.slots
    median, low, high = statistics.median(seconds), seconds[len(seconds) // 20], seconds[-len(seconds) // 20]
    print(describe(hardware))
    print(f"hand-over, median of {BATCHES} medians of {TIMES}: {median * 1e6:.1f} us")
    print(
        f"nine in ten of these medians lie in [{low * 1e6:.1f}, {high * 1e6:.1f}] us: {(high - low) / median:.1%} apart"
    )
    shortest = slots * LAUNCH_BOUND_SECONDS
    print(
        f"the shortest call that gets a speed label takes {LAUNCH_BOUND_SECONDS * 1e6:.0f} us; a block of {slots} "
        f"such calls takes {shortest * 1e6:.0f} us, of which that spread is {(high - low) / shortest:.2%}"
    )
    save(options.json, {"hardware": hardware.model_dump(mode="json"), "hand_over_seconds": seconds})


if __name__ == "__main__":
    main()
