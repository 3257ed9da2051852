"""KernelBench's evaluator at work: one candidate after another, each in a process of its own, as its users run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.benchmarks.gpu_candidates import TASKS, Sample

SCRIPT = Path(__file__).with_name("kernelbench_one.py")
DEADLINE_SECONDS = 180.0
"""The time limit of its batch script."""


class Theirs(NamedTuple):
    """What KernelBench said of one candidate."""

    seconds: float
    """From starting the process to its end: imports, build, five trials, a hundred timed runs of either side."""
    answer: dict[str, Any]

    @property
    def correct(self) -> bool:
        """Whether it takes the candidate for right."""
        return bool(self.answer.get("compiled") and self.answer.get("correctness"))

    @property
    def speedup(self) -> float | None:
        """Its mean time of eager over its mean time of the candidate."""
        runtime, reference = self.answer.get("runtime", -1.0), self.answer.get("ref_runtime", -1.0)
        return reference / runtime if self.correct and runtime > 0 and reference > 0 else None

    @property
    def word(self) -> str:
        """The verdict in a word or two."""
        if self.correct:
            flagged = self.answer.get("metadata", {}).get("excessive_speedup")
            return "correct (flagged: excessive speed-up)" if flagged else "correct"
        return "wrong" if self.answer.get("compiled") else "not built"


def ask(kernelbench: Path, sample: Sample, gpu_arch: str) -> Theirs:
    """Have one candidate judged; nothing is built or compiled beforehand."""
    with tempfile.TemporaryDirectory(prefix="kernelbench-") as name:
        folder = Path(name)
        request, answer = folder / "request.json", folder / "answer.json"
        content = {
            "kernelbench": str(kernelbench),
            "reference": TASKS[sample.task].source(small=False),
            "candidate": sample.source(),
            "backend": sample.language.value,
            "build_dir": str(folder / "build"),
            "gpu_arch": gpu_arch,
        }
        request.write_text(json.dumps(content))
        environment = {**os.environ, "TRITON_CACHE_DIR": str(folder / "triton")}
        command = [sys.executable, str(SCRIPT), str(request), str(answer)]
        start = time.perf_counter()
        log = _run(command, environment)
        seconds = time.perf_counter() - start
        if answer.exists():
            return Theirs(seconds, json.loads(answer.read_text()))
        return Theirs(seconds, {"compiled": False, "correctness": False, "metadata": {"ended": log[-2000:]}})


def _run(command: list[str], environment: dict[str, str]) -> str:
    """What it printed to stderr."""
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"did not finish within {DEADLINE_SECONDS:g} s"
    return done.stderr
