"""`quarry filter`: runs every task on this machine and keeps the ones that can carry a label."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import typer
from pydantic import JsonValue, TypeAdapter

from pipeline import jobs, paths
from pipeline.errors import InfrastructureFault
from pipeline.jobs import Site
from pipeline.ledger import Ledger, ledger_key
from pipeline.machine import crew, device_kind, hardware
from pipeline.preflight import preflight
from pipeline.progress import Progress
from pipeline.settings import Settings
from pipeline.tables import read_table, write_table
from pipeline.workers import Workers
from sandbox.judge.profile import NoiseFault
from sandbox.version import judge_version
from schemas.baseline import Baseline
from schemas.evaluation import Fault
from schemas.parameters import Parameters
from schemas.task import RejectedTask, Task
from stages.filter.version import filter_version

AHEAD = 4
"""Tasks whose baselines compile while another is being timed, for each core."""
ATTEMPTS = 3
SIFTED: TypeAdapter[Baseline | RejectedTask] = TypeAdapter(Baseline | RejectedTask)
"""A ledger entry is one of the two; their fields tell them apart."""


class Sifted(NamedTuple):
    """All tasks, each in one of three places."""

    baselines: list[Baseline]
    rejected: list[RejectedTask]
    faults: list[Fault]


def run(parameters: Parameters, settings: Settings) -> None:
    """Read tasks, filter them, write accepted and rejected ones, baselines and faults."""
    preflight(settings)
    tasks = read_table(paths.TASKS, Task)
    with Ledger.open(settings.ledger) as ledger:
        machine = hardware(ledger, device_kind(parameters.device))
        site = Site(cache=settings.cache, hardware=machine, judge=parameters.judge)
        sifted = asyncio.run(_sift(tasks, site, parameters, settings, ledger))
    by_id = {task.task_id: task for task in tasks}
    write_table(paths.TASKS_ACCEPTED, Task, [by_id[baseline.task_id] for baseline in sifted.baselines])
    write_table(paths.TASKS_REJECTED, RejectedTask, sifted.rejected)
    write_table(paths.BASELINES, Baseline, sifted.baselines)
    write_table(paths.FILTER_FAULTS, Fault, sifted.faults)
    typer.echo(f"filter: {len(sifted.baselines)} of {len(tasks)} tasks accepted, {len(sifted.faults)} faults")


async def _sift(
    tasks: Sequence[Task], site: Site, parameters: Parameters, settings: Settings, ledger: Ledger
) -> Sifted:
    workforce = crew(site.hardware, settings)
    ahead = asyncio.Semaphore(AHEAD * workforce.builders)
    async with Workers.start(settings, workforce) as workers:
        with Progress("filter", len(tasks), "task") as progress:
            sieve = Sieve(site, parameters, ledger, workers, progress)

            async def one(task: Task) -> Baseline | RejectedTask | Fault:
                async with ahead:
                    return await sieve.sift(task)

            results = await asyncio.gather(*(one(task) for task in tasks))
    return Sifted(
        baselines=[result for result in results if isinstance(result, Baseline)],
        rejected=[result for result in results if isinstance(result, RejectedTask)],
        faults=[result for result in results if isinstance(result, Fault)],
    )


class Sieve:
    """Sifts one task at a time: from the ledger if it was sifted before, else on the workers."""

    def __init__(
        self, site: Site, parameters: Parameters, ledger: Ledger, workers: Workers, progress: Progress
    ) -> None:
        self._site, self._parameters, self._ledger = site, parameters, ledger
        self._workers, self._progress = workers, progress
        self._versions: list[JsonValue] = [
            judge_version(site.judge),
            filter_version(),
            parameters.filter.model_dump(mode="json"),
        ]

    async def sift(self, task: Task) -> Baseline | RejectedTask | Fault:
        """The task's baseline, its rejection, or the fault that kept us from finding out."""
        key = ledger_key("filter", task.task_id, self._site.hardware.hardware_id, *self._versions)
        stored = self._ledger.get(key)
        if stored is not None:
            self._progress.known()
            return SIFTED.validate_json(stored)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                result = await self._work(task, key)
            except InfrastructureFault as error:
                fault = _fault(task, error, attempt)
            else:
                kind = "baseline" if isinstance(result, Baseline) else "rejection"
                self._ledger.put(key, kind, result.model_dump_json())
                self._progress.done()
                return result
        self._progress.fault()
        return fault

    async def _work(self, task: Task, key: str) -> Baseline | RejectedTask:
        await self._workers.run("BUILD", f"{key}-compile", jobs.compile_baseline, self._site, task)
        return await self._workers.judge(task.task_id, key, jobs.admit, self._site, task, self._parameters.filter)


def _fault(task: Task, error: InfrastructureFault, attempts: int) -> Fault:
    noise = isinstance(error.__cause__, NoiseFault)
    return Fault(
        stage="filter",
        item_id=task.task_id,
        step="baseline",
        kind="fault_noise" if noise else "fault_infrastructure",
        message=str(error),
        attempts=attempts,
    )
