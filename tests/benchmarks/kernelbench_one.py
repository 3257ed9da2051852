"""Has KernelBench's own evaluator judge one candidate, as its batch script does: a fresh process for each.

Run by `tests.benchmarks.peer` as a script, `kernelbench_one.py REQUEST ANSWER`, so that this process imports nothing
of ours. The request names the folder of a checkout of github.com/ScalingIntelligence/KernelBench (MIT); none of its
files is changed. Its `utils` module imports three clients of language-model services, which evaluating never calls:
where they are not installed, empty modules stand in for them.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

CLIENTS = {"dotenv": "load_dotenv", "openai": "OpenAI", "litellm": "completion"}
"""Module and the one name that is imported from it."""


def main(request_path: Path, answer_path: Path) -> None:
    """Judge what the request asks for and write what came out, or how it broke off."""
    request = json.loads(request_path.read_text())
    _stand_in_for_clients()
    sys.path.insert(0, str(Path(request["kernelbench"]) / "src"))
    try:
        answer = _judge(request)
    except Exception as error:
        answer = {"compiled": False, "correctness": False, "metadata": {"raised": f"{type(error).__name__}: {error}"}}
    answer_path.write_text(json.dumps(answer, default=str))


def _judge(request: dict[str, Any]) -> dict[str, Any]:
    """The evaluator's answer with the settings of its batch script: 5 trials, 100 timed runs."""
    import torch
    from kernelbench import utils  # type: ignore[import-not-found]
    from kernelbench.eval import eval_kernel_against_ref  # type: ignore[import-not-found]

    utils.set_gpu_arch([request["gpu_arch"]])
    result = eval_kernel_against_ref(
        original_model_src=request["reference"],
        custom_model_src=request["candidate"],
        measure_performance=True,
        timing_method="cuda_event",
        verbose=False,
        num_correct_trials=5,
        num_perf_trials=100,
        build_dir=request["build_dir"],
        device=torch.device("cuda:0"),
        backend=request["backend"],
        precision=torch.float32,
    )
    if result is None:
        return {"compiled": False, "correctness": False, "metadata": {"raised": "lock file, to be tried again"}}
    answer: dict[str, Any] = result.model_dump()
    return answer


def _stand_in_for_clients() -> None:
    for name, attribute in CLIENTS.items():
        if importlib.util.find_spec(name) is None:
            module = ModuleType(name)
            setattr(module, attribute, lambda *_args, **_kwargs: None)
            sys.modules[name] = module


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
