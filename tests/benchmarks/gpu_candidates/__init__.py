"""Tasks in KernelBench's form and candidates for them, right ones and wrong ones, for comparing evaluators."""

from __future__ import annotations

from schemas.candidate import Language
from tests.benchmarks.gpu_candidates.base import Sample
from tests.benchmarks.gpu_candidates.cpp import CPP
from tests.benchmarks.gpu_candidates.cuda import CUDA
from tests.benchmarks.gpu_candidates.tasks import TASKS, task
from tests.benchmarks.gpu_candidates.triton import TRITON

SAMPLES: dict[Language, tuple[Sample, ...]] = {Language.CPP: CPP, Language.CUDA: CUDA, Language.TRITON: TRITON}
"""All candidates by what they are written with."""

__all__ = ["SAMPLES", "TASKS", "Sample", "task"]
