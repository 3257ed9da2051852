"""`quarry rollout`: lets the policies play every accepted task, judging each turn on the workers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import NamedTuple, TypeVar

import typer

from pipeline import paths
from pipeline.evaluator import Evaluator, GivenUp
from pipeline.jobs import Site, device_gate
from pipeline.ledger import Ledger
from pipeline.machine import Crew, crew
from pipeline.preflight import preflight
from pipeline.progress import Progress
from pipeline.settings import Settings
from pipeline.tables import read_table, write_table
from pipeline.workers import Workers
from schemas.baseline import Baseline
from schemas.candidate import Candidate
from schemas.evaluation import Evaluation, Fault
from schemas.parameters import Parameters
from schemas.task import Task
from schemas.trajectory import Trajectory
from stages.rollout.episode import EpisodeRun
from stages.rollout.policies import policy
from stages.rollout.policies.base import Brief

T = TypeVar("T")


class Played(NamedTuple):
    """What one episode left."""

    trajectory: Trajectory
    candidates: list[Candidate]
    evaluations: list[Evaluation]
    fault: Fault | None


class Thinker:
    """Runs policies one at a time; on a CPU, whose cores are what is timed, only while no clock runs."""

    def __init__(self, site: Site) -> None:
        self._gate = device_gate(site)
        self._gated = site.hardware.kind == "cpu"
        self.seconds = 0.0
        """Seconds that policies thought, waits for a clock left out."""
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="policy")

    async def think(self, work: Callable[[], T]) -> T:
        """The result of `work`, computed on the policies' thread."""

        def quietly() -> T:
            with self._gate.work() if self._gated else nullcontext():
                start = time.perf_counter()
                try:
                    return work()
                finally:
                    self.seconds += time.perf_counter() - start

        return await asyncio.get_running_loop().run_in_executor(self._thread, quietly)

    def close(self) -> None:
        """Let the thread end."""
        self._thread.shutdown()
        self._gate.close()


def run(parameters: Parameters, settings: Settings) -> None:
    """Read accepted tasks and baselines, play all episodes, write what they left."""
    preflight(settings)
    tasks = read_table(paths.TASKS_ACCEPTED, Task)
    baselines = {baseline.task_id: baseline for baseline in read_table(paths.BASELINES, Baseline)}
    pairs = [(task, baselines[task.task_id]) for task in tasks]
    with Ledger.open(settings.ledger) as ledger:
        played = asyncio.run(_play_all(pairs, parameters, settings, ledger)) if pairs else []
    faults = [episode.fault for episode in played if episode.fault is not None]
    write_table(paths.TRAJECTORIES, Trajectory, [episode.trajectory for episode in played])
    write_table(paths.CANDIDATES, Candidate, _first(c for e in played for c in e.candidates))
    write_table(paths.EVALUATIONS, Evaluation, _first(v for e in played for v in e.evaluations))
    write_table(paths.ROLLOUT_FAULTS, Fault, faults)
    judged = len({evaluation.evaluation_id for episode in played for evaluation in episode.evaluations})
    typer.echo(f"rollout: {len(played)} trajectories, {judged} judged candidates, {len(faults)} faults")


async def _play_all(
    pairs: Sequence[tuple[Task, Baseline]], parameters: Parameters, settings: Settings, ledger: Ledger
) -> list[Played]:
    """All episodes of all tasks; a few tasks at a time, since the judge keeps each of them open."""
    site = Site(cache=settings.cache, hardware=pairs[0][1].hardware, judge=parameters.judge)
    thinker = Thinker(site)
    workforce = crew(site.hardware, settings)
    open_tasks = asyncio.Semaphore(parameters.rollout.in_flight * len(workforce.devices))
    total = len(pairs) * sum(entry.episodes for entry in parameters.rollout.policies)
    try:
        async with Workers.start(settings, workforce) as workers:
            with Progress("rollout", total, "episode") as progress:
                evaluator = Evaluator(site, ledger, workers, parameters.rollout.retries)
                table = Table(parameters, evaluator, thinker, progress)

                async def one(task: Task, baseline: Baseline) -> list[Played]:
                    async with open_tasks:
                        return await table.play(task, baseline)

                started = time.perf_counter()
                groups = await asyncio.gather(*(one(task, baseline) for task, baseline in pairs))
                elapsed = time.perf_counter() - started
            typer.echo(_where_the_time_went(workers.seconds, thinker.seconds, elapsed, workforce))
    finally:
        thinker.close()
    return [played for group in groups for played in group]


def _where_the_time_went(jobs: Mapping[str, float], thinking: float, elapsed: float, crew: Crew) -> str:
    judging = jobs.get("verify", 0.0) + jobs.get("profile", 0.0)
    return (
        f"rollout: {elapsed:.0f} s, judges busy {judging / max(elapsed * len(crew.devices), 1e-9):.0%} of it "
        f"({jobs.get('verify', 0.0):.0f} s verifying, {jobs.get('profile', 0.0):.0f} s profiling), "
        f"{jobs.get('build', 0.0):.0f} s of builds on {crew.builders} workers, {thinking:.0f} s of policies"
    )


class Table:
    """Plays the episodes of a task side by side."""

    def __init__(self, parameters: Parameters, evaluator: Evaluator, thinker: Thinker, progress: Progress) -> None:
        self._parameters, self._evaluator = parameters.rollout, evaluator
        self._thinker, self._progress = thinker, progress

    async def play(self, task: Task, baseline: Baseline) -> list[Played]:
        """All episodes of a task, in the order of the parameters."""
        runs = [
            (entry.name, Brief(task, baseline, self._parameters.seed, episode, self._parameters.turns))
            for entry in self._parameters.policies
            for episode in range(entry.episodes)
        ]
        return list(await asyncio.gather(*(self._episode(name, brief) for name, brief in runs)))

    async def _episode(self, name: str, brief: Brief) -> Played:
        episode = EpisodeRun(policy(name), brief)
        evaluations: list[Evaluation] = []
        fault: Fault | None = None
        while (candidate := await self._thinker.think(episode.act)) is not None:
            try:
                evaluation = await self._evaluator.evaluate(brief.task, brief.baseline, candidate)
            except GivenUp as error:
                fault = error.fault
                episode.give_up()
                break
            evaluations.append(evaluation)
            episode.observe(evaluation)
        self._count(episode.candidates, fault)
        return Played(episode.trajectory(), episode.candidates, evaluations, fault)

    def _count(self, candidates: Iterable[Candidate], fault: Fault | None) -> None:
        if fault is not None:
            self._progress.fault()
        elif any(candidate.candidate_id in self._evaluator.judged for candidate in candidates):
            self._progress.done()
        else:
            self._progress.known()


R = TypeVar("R", Candidate, Evaluation)


def _first(records: Iterable[R]) -> list[R]:
    """Each record once, by its id: the first of several policies that wrote the same candidate counts as its author."""
    kept: dict[str, R] = {}
    for record in records:
        kept.setdefault(record.content_id(), record)
    return list(kept.values())
