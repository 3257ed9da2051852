"""If these fail, a lost worker becomes a verdict, hangs a run, or stays behind as a process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import psutil
import pytest
from distributed import Scheduler, Worker

from pipeline.errors import InfrastructureFault, UserError
from pipeline.machine import Crew
from pipeline.settings import Settings
from pipeline.workers import Workers
from tests.pipeline import jobs

ONE = Crew(builders=1, devices=("",), threads=2)


def _settings(folder: Path, scheduler: str | None = None) -> Settings:
    return Settings(cache=folder, ledger=folder / "ledger.sqlite", scheduler=scheduler, scratch=folder)


def _descendants() -> list[psutil.Process]:
    tracker = "multiprocessing.resource_tracker"  # stays with the process that first needed it, by design
    return [p for p in psutil.Process().children(recursive=True) if tracker not in " ".join(p.cmdline())]


def test_what_goes_wrong_on_a_worker_is_a_fault_and_the_next_job_runs(tmp_path: Path):
    async def session() -> None:
        async with Workers.start(_settings(tmp_path), ONE) as workers:
            judge = await workers.run("DEVICE", "k", jobs.pid)
            assert len({judge, await workers.run("BUILD", "k", jobs.pid), os.getpid()}) == 3, "builds leave the judge"
            assert await workers.run("BUILD", "k", jobs.child) == "hello\n"
            with pytest.raises(InfrastructureFault, match="the worker was lost"):
                await workers.run("DEVICE", "k", jobs.die)
            assert await workers.run("DEVICE", "k", jobs.pid) != judge, "the judge came back as another process"
            with pytest.raises(InfrastructureFault, match="the fork server ended"):
                await workers.run("BUILD", "k", jobs.fail_in_the_sandbox)
            with pytest.raises(InfrastructureFault, match="No space left on device"):
                await workers.run("BUILD", "k", jobs.fill_the_disk)
            with pytest.raises(KeyError, match="slip"):
                await workers.run("BUILD", "k", jobs.slip)

    asyncio.run(session())
    assert _descendants() == []
    assert list(tmp_path.iterdir()) == [], "scratch folders are removed"


def test_a_run_that_breaks_off_leaves_no_worker(tmp_path: Path):
    async def session() -> None:
        async with Workers.start(_settings(tmp_path), ONE) as workers:
            job = asyncio.create_task(workers.run("BUILD", "k", jobs.work_for_ever, str(tmp_path / "mark")))
            await _until(lambda: (tmp_path / "mark").exists())
            assert not job.done()
            raise UserError("the ledger's disk is full")

    with pytest.raises(UserError, match="disk is full"):
        asyncio.run(session())
    assert _descendants() == []


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("how", ["killed", "interrupted"])
def test_workers_end_with_the_run_that_started_them(tmp_path: Path, how: Literal["killed", "interrupted"]):
    """A worker that stayed behind would load the cores on which the next run measures."""
    run = subprocess.Popen(
        [sys.executable, "-m", "tests.pipeline.jobs", str(tmp_path)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    while not ((tmp_path / "building").exists() and (tmp_path / "judging").exists()):
        assert run.poll() is None
        time.sleep(0.02)
    workers = psutil.Process(run.pid).children(recursive=True)
    assert len(workers) >= 2
    if how == "killed":
        run.kill()
    else:
        os.killpg(run.pid, signal.SIGINT)  # what a terminal does on Ctrl-C
    run.wait()
    psutil.wait_procs(workers)


@asynccontextmanager
async def _cluster(offered: dict[str, int]) -> AsyncIterator[str]:
    """The address of somebody's scheduler with one worker."""
    options = {"port": 0, "host": "127.0.0.1", "dashboard": False, "dashboard_address": "127.0.0.1:0"}
    async with Scheduler(**options) as scheduler, Worker(scheduler.address, resources=offered, nthreads=1):
        yield scheduler.address


def test_a_cluster_without_a_judge_is_refused_before_waiting(tmp_path: Path):
    async def session() -> None:
        async with _cluster({"BUILD": 1}) as address, Workers.start(_settings(tmp_path, address), ONE):
            pass

    with pytest.raises(UserError, match=r"offers the resource DEVICE: start one with `dask worker --resources"):
        asyncio.run(session())


def test_a_running_cluster_is_used(tmp_path: Path):
    async def session() -> int:
        async with (
            _cluster({"BUILD": 1, "DEVICE": 1}) as address,
            Workers.start(_settings(tmp_path, address), ONE) as workers,
        ):
            return await workers.run("DEVICE", "k", jobs.pid)

    assert asyncio.run(session()) == os.getpid()


def test_an_address_that_is_none_is_told(tmp_path: Path):
    async def session() -> None:
        async with Workers.start(_settings(tmp_path, "my-cluster"), ONE):
            pass

    with pytest.raises(UserError, match=r"scheduler at my-cluster does not answer .* unset QUARRY_SCHEDULER"):
        asyncio.run(session())
