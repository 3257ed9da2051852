"""If these fail, a host with several devices uses one of them, or loses verdicts with one of them."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from pipeline import machine
from pipeline.errors import InfrastructureFault, UserError
from pipeline.machine import Crew, crew
from pipeline.settings import Settings, load_settings
from pipeline.workers import Workers
from tests import factories
from tests.pipeline import jobs

TWO = Crew(builders=1, devices=("", ""), threads=2)


def _settings(folder: Path) -> Settings:
    return Settings(cache=folder, ledger=folder / "ledger.sqlite", scheduler=None, scratch=folder)


def test_every_device_has_a_judge_and_every_task_stays_with_one(tmp_path: Path):
    async def session() -> None:
        async with Workers.start(_settings(tmp_path), TWO) as workers:
            homes = ["a", "b", "c", "d"] * 3
            judges = await asyncio.gather(*(workers.judge(home, "k", jobs.pid) for home in homes))
            of_home = {
                home: {judge for name, judge in zip(homes, judges, strict=True) if name == home} for home in "abcd"
            }
            assert all(len(one) == 1 for one in of_home.values()), "a task's candidates meet the bench that is open"
            assert len(set(judges)) == 2, "both devices work"
            numbers = {await workers.judge(home, "k", jobs.device) for home in "abcd"}
            assert numbers == {"0", "1"}

    asyncio.run(session())


def test_the_tasks_of_a_lost_judge_go_on_elsewhere(tmp_path: Path):
    async def session() -> None:
        async with Workers.start(_settings(tmp_path), TWO) as workers:
            first = {home: await workers.judge(home, "k", jobs.pid) for home in "ab"}
            assert len(set(first.values())) == 2
            os.kill(first["a"], signal.SIGKILL)
            with pytest.raises(InfrastructureFault):
                await workers.judge("a", "k", jobs.die)
            assert await workers.judge("a", "k", jobs.pid) != first["a"]
            assert await workers.judge("b", "k", jobs.pid) == first["b"], "the other one does not notice"

    asyncio.run(session())


def test_the_crew_fits_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    settings = _settings(tmp_path)
    assert crew(factories.hardware(), settings) == Crew(2, ("",), 2)
    simulated = load_settings({"QUARRY_SIMULATED_DEVICES": "2", "HOME": str(tmp_path)})
    assert crew(factories.hardware(), simulated).devices == ("", "")
    gpu = factories.hardware("NVIDIA H200").model_copy(update={"kind": "cuda", "cores": 16})
    monkeypatch.setattr(machine, "visible_devices", lambda: {"0": gpu.name, "3": gpu.name})
    assert crew(gpu, settings) == Crew(11, ("0", "3"), 16)
    monkeypatch.setattr(machine, "visible_devices", lambda: {"0": gpu.name, "3": "NVIDIA L4"})
    with pytest.raises(UserError, match=r"NVIDIA L4.*CUDA_VISIBLE_DEVICES"):
        crew(gpu, settings)


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5"])
def test_a_wrong_number_of_devices_is_refused(text: str, tmp_path: Path):
    with pytest.raises(UserError, match=r"QUARRY_SIMULATED_DEVICES is .*whole number"):
        load_settings({"QUARRY_SIMULATED_DEVICES": text, "HOME": str(tmp_path)})
