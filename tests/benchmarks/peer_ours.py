"""Our own judge at work, through the pieces that a rollout is made of: workers, evaluator, ledger, filter."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from pipeline import jobs
from pipeline.evaluator import Evaluator, GivenUp
from pipeline.machine import crew
from pipeline.settings import Settings
from pipeline.workers import Workers
from sandbox.device import Kind
from schemas.baseline import Baseline
from schemas.evaluation import Evaluation, Verdict
from schemas.hardware import Hardware
from schemas.parameters import ByDevice, FilterParameters, JudgeParameters
from schemas.task import RejectedTask, Task
from tests.benchmarks.gpu_candidates import Sample, task
from tests.benchmarks.machine import site

FILTER = FilterParameters(eager_ms=ByDevice(cpu=(0.02, 100.0), cuda=(0.02, 100.0)))
RETRIES = 2


class Entry(NamedTuple):
    """A candidate to be judged: which one, in which variant."""

    sample: Sample
    variant: int


class Ours(NamedTuple):
    """What our judge said of one candidate; exactly one of the two is null."""

    entry: Entry
    evaluation: Evaluation | None
    fault: str | None

    @property
    def correct(self) -> bool:
        """Whether it takes the candidate for right."""
        return self.evaluation is not None and self.evaluation.verdict is Verdict.CORRECT

    @property
    def speedup(self) -> float | None:
        """Eager's time over the candidate's."""
        profile = None if self.evaluation is None else self.evaluation.profile
        return None if profile is None else profile.speedup_eager.value

    @property
    def word(self) -> str:
        """The verdict in a word."""
        return "fault" if self.evaluation is None else self.evaluation.verdict.value

    @property
    def message(self) -> str:
        """The verdict in a sentence."""
        return self.fault or (self.evaluation.message if self.evaluation is not None else "")


class Batch(NamedTuple):
    """Candidates that were submitted together."""

    seconds: float
    results: list[Ours]

    @property
    def per_hour(self) -> float:
        """Candidates an hour."""
        return 3600 * len(self.results) / self.seconds


class House:
    """Workers with the baselines of some tasks. Use `open_house`."""

    def __init__(self, hardware: Hardware, evaluator: Evaluator, open_tasks: int) -> None:
        self.hardware = hardware
        self.open_tasks = open_tasks
        self.evaluator = evaluator
        self.pairs: dict[str, tuple[Task, Baseline]] = {}
        self.rejected: dict[str, str] = {}
        self.baseline_seconds = 0.0
        """Opening all tasks: compiling, calibrating, auditing and timing their references."""

    async def judge(self, entries: Sequence[Entry]) -> Batch:
        """Submit candidates together, a few tasks side by side; those of a rejected task are left out."""
        kept = [entry for entry in entries if entry.sample.task in self.pairs]
        names = list(dict.fromkeys(entry.sample.task for entry in kept))
        gate = asyncio.Semaphore(self.open_tasks)
        start = time.perf_counter()

        async def group(name: str) -> list[Ours]:
            async with gate:
                return list(await asyncio.gather(*(self._one(entry) for entry in kept if entry.sample.task == name)))

        groups = await asyncio.gather(*(group(name) for name in names))
        return Batch(time.perf_counter() - start, [result for results in groups for result in results])

    async def _one(self, entry: Entry) -> Ours:
        of, baseline = self.pairs[entry.sample.task]
        try:
            candidate = entry.sample.candidate(of, entry.variant)
            return Ours(entry, await self.evaluator.evaluate(of, baseline, candidate), None)
        except GivenUp as error:
            return Ours(entry, None, str(error))


@asynccontextmanager
async def open_house(kind: Kind, names: Iterable[str], open_tasks: int) -> AsyncIterator[House]:
    """Start workers in folders of their own and run the filter on the named tasks."""
    with site(kind, JudgeParameters()) as (place, ledger, folder):
        settings = Settings(cache=folder, ledger=folder / "ledger.sqlite", scheduler=None, scratch=folder)
        async with Workers.start(settings, crew(place.hardware, settings)) as workers:
            house = House(place.hardware, Evaluator(place, ledger, workers, RETRIES), open_tasks)
            tasks = {name: task(name, small=kind == "cpu") for name in names}
            start = time.perf_counter()

            async def admit(of: Task) -> Baseline | RejectedTask:
                await workers.run("BUILD", f"{of.task_id}-compile", jobs.compile_baseline, place, of)
                return await workers.judge(of.task_id, of.task_id, jobs.admit, place, of, FILTER)

            found = await asyncio.gather(*(admit(of) for of in tasks.values()))
            house.baseline_seconds = time.perf_counter() - start
            for (name, of), result in zip(tasks.items(), found, strict=True):
                if isinstance(result, RejectedTask):
                    house.rejected[name] = f"{result.reason}: {result.detail}"
                else:
                    house.pairs[name] = (of, result)
            yield house
