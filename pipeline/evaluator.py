"""Judges candidates: looks each step up in the ledger, sends what is missing to the workers, keeps the results."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from pydantic import BaseModel, JsonValue

from pipeline import jobs
from pipeline.errors import InfrastructureFault
from pipeline.jobs import Site
from pipeline.ledger import Ledger, ledger_key
from pipeline.workers import Workers
from sandbox.extension.build import Artefact
from sandbox.judge.outcome import Outcome
from sandbox.judge.profile import NoiseFault
from sandbox.version import build_version, judge_version
from schemas.baseline import Baseline
from schemas.candidate import Candidate
from schemas.evaluation import Build, Evaluation, Fault
from schemas.record import Record
from schemas.task import Task
from stages.rollout.evaluate import evaluation

R = TypeVar("R", bound=BaseModel)


class StoredBuild(Record):
    """A build as the ledger keeps it: the report, and where its extensions stand in the cache."""

    report: Build
    artefacts: tuple[Artefact, ...]


class GivenUp(Exception):
    """A step failed for reasons of ours as often as we were willing to try."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Judging(NamedTuple):
    """One candidate on its way through the steps."""

    task: Task
    baseline: Baseline
    candidate: Candidate


class Evaluator:
    """Evaluates candidates, each at most once, however many episodes submit it at the same time."""

    def __init__(self, site: Site, ledger: Ledger, workers: Workers, retries: int) -> None:
        self._site, self._ledger, self._workers, self._retries = site, ledger, workers, retries
        self._version = judge_version(site.judge)
        self._running: dict[str, asyncio.Task[Evaluation]] = {}
        self.judged: set[str] = set()
        """Candidates for which this run had to do any step."""

    async def evaluate(self, task: Task, baseline: Baseline, candidate: Candidate) -> Evaluation:
        """The candidate's evaluation on this machine. Raises `GivenUp`."""
        key = candidate.candidate_id
        if key not in self._running:
            self._running[key] = asyncio.create_task(self._evaluate(Judging(task, baseline, candidate)))
        return await asyncio.shield(self._running[key])

    async def _evaluate(self, judging: Judging) -> Evaluation:
        build = await self._build(judging, fresh=False)
        verified = profiled = None
        if build.report.ok:
            verified = await self._run(judging, build, "verify", jobs.verify)
            if verified.verdict is None:
                profiled = await self._run(judging, build, "profile", jobs.profile)
        return evaluation(judging.candidate, judging.baseline, self._version, build.report, verified, profiled)

    async def _build(self, judging: Judging, *, fresh: bool) -> StoredBuild:
        """The stored build; done again where its extensions have left the cache and are needed."""
        hardware = self._site.hardware
        key = self._key("build", judging, [build_version(), hardware.architecture, hardware.compiler])
        stored = None if fresh else self._ledger.get(key)
        if stored is not None:
            return StoredBuild.model_validate_json(stored)

        async def work() -> StoredBuild:
            outcome = await self._workers.run("BUILD", key, jobs.build, self._site, judging.candidate)
            return StoredBuild(report=outcome.report, artefacts=outcome.artefacts)

        return await self._attempt("build", judging, key, work)

    async def _run(
        self,
        judging: Judging,
        build: StoredBuild,
        step: str,
        job: Callable[..., Outcome],
    ) -> Outcome:
        key = self._key(step, judging, [self._version, self._site.hardware.hardware_id, _tolerance(judging)])
        stored = self._ledger.get(key)
        if stored is not None:
            return Outcome.model_validate_json(stored)

        async def work() -> Outcome:
            artefacts = build.artefacts
            if not all(Path(artefact.path).exists() for artefact in artefacts):
                artefacts = (await self._build(judging, fresh=True)).artefacts
            return await self._workers.judge(judging.task.task_id, key, job, self._site, *judging, artefacts)

        return await self._attempt(step, judging, key, work)

    async def _attempt(self, step: str, judging: Judging, key: str, work: Callable[[], Awaitable[R]]) -> R:
        """Do a step, again after a fault of ours, and keep its result. Raises `GivenUp`."""
        self.judged.add(judging.candidate.candidate_id)
        for attempt in range(1, self._retries + 2):
            try:
                result = await work()
            except InfrastructureFault as error:
                fault = Fault(
                    stage="rollout",
                    item_id=judging.candidate.candidate_id,
                    step=step,
                    kind="fault_noise" if isinstance(error.__cause__, NoiseFault) else "fault_infrastructure",
                    message=str(error),
                    attempts=attempt,
                )
            else:
                self._ledger.put(key, step, result.model_dump_json())
                return result
        raise GivenUp(fault)

    @staticmethod
    def _key(step: str, judging: Judging, parts: list[JsonValue]) -> str:
        return ledger_key(step, judging.candidate.candidate_id, *parts)


def _tolerance(judging: Judging) -> JsonValue:
    """What a verdict depends on besides candidate, judge and machine: how wrong an output may be."""
    return judging.baseline.tolerance.model_dump(mode="json")
