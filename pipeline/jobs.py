"""What runs on the workers. Each worker process keeps its fork servers and its judge from one job to the next."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import torch

from sandbox.device import Device, open_device
from sandbox.extension.build import Artefact, BuildOutcome, build_candidate
from sandbox.gate import Gate
from sandbox.judge.judge import Judge, Judged
from sandbox.judge.outcome import Outcome
from sandbox.limits import Limits
from sandbox.precompile import precompile
from sandbox.servers import Servers
from schemas.baseline import Baseline
from schemas.candidate import Candidate
from schemas.hardware import Hardware
from schemas.parameters import FilterParameters, JudgeParameters
from schemas.task import RejectedTask, Task
from stages.filter import Rejection, examine


class Site(NamedTuple):
    """What a worker must know of the machine and the run. Equal sites share a station."""

    cache: Path
    """Folder that lasts: built extensions, compiled baselines, the device's lock files."""
    hardware: Hardware
    judge: JudgeParameters


DEVICE_NUMBER = "QUARRY_DEVICE"
"""Variable in a worker's environment: which of the host's devices it works for."""


def device_gate(site: Site) -> Gate:
    """The gate to the device; its folder is the same for every process on the machine that uses this device.

    The cores of a machine are one device, however many judges share them.
    """
    number = os.environ.get(DEVICE_NUMBER, "0") if site.hardware.kind == "cuda" else "0"
    folder = site.cache / "device" / f"{site.hardware.kind}-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    return Gate(folder)


class Station:
    """One worker process's own tools, made when first used."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.servers = Servers(threads=site.hardware.cores, cache=site.cache, kind=site.hardware.kind)

    @cached_property
    def gate(self) -> Gate:
        """The device's gate."""
        return device_gate(self._site)

    @cached_property
    def device(self) -> Device:
        """The device that this process is shown."""
        return open_device(self._site.hardware.kind)

    @cached_property
    def judge(self) -> Judge:
        """The judge of the device."""
        torch.set_num_threads(self._site.hardware.cores)  # Dask gives its workers one; truths take all, between clocks
        return Judge(
            self._site.judge,
            hardware=self._site.hardware,
            device=self.device,
            gate=self.gate,
            servers=self.servers,
        )

    def close(self) -> None:
        """Stop every process that this one started."""
        if "judge" in self.__dict__:
            self.judge.close()
        self.servers.stop()


_stations: dict[Site, Station] = {}


def _station(site: Site) -> Station:
    if site not in _stations:
        close_stations()
        _stations[site] = Station(site)
    return _stations[site]


def close_stations() -> None:
    """Stop what the jobs of this process have started."""
    while _stations:
        _stations.popitem()[1].close()


atexit.register(close_stations)


def build(site: Site, candidate: Candidate) -> BuildOutcome:
    """Build a candidate's extensions into the cache. Raises `SandboxFault`."""
    station = _station(site)
    workspace = Path(tempfile.mkdtemp(prefix="quarry-build-"))
    try:
        return build_candidate(
            candidate.files,
            server=station.servers.untrusted,
            workspace=workspace,
            cache=site.cache / "extensions",
            limits=Limits(memory_bytes=site.judge.memory_mb << 20),
            deadline_s=site.judge.build_deadline_s,
            gate=station.gate if site.hardware.kind == "cpu" else None,
            architecture=site.hardware.architecture if site.hardware.kind == "cuda" else None,
        )
    finally:
        shutil.rmtree(workspace, ignore_errors=True)


def verify(site: Site, task: Task, baseline: Baseline, candidate: Candidate, artefacts: Sequence[Artefact]) -> Outcome:
    """Is the candidate right? Raises `SandboxFault`."""
    return _station(site).judge.verify(Judged(task, candidate, artefacts, baseline))


def profile(site: Site, task: Task, baseline: Baseline, candidate: Candidate, artefacts: Sequence[Artefact]) -> Outcome:
    """How fast is it? Raises `SandboxFault`, also where the machine is too unsteady."""
    return _station(site).judge.profile(Judged(task, candidate, artefacts, baseline))


def compile_baseline(site: Site, task: Task) -> None:
    """Fill the cache with the task's compiled baseline, away from the device."""
    station = _station(site)
    scratch = Path(tempfile.mkdtemp(prefix="quarry-compile-"))
    try:
        precompile(
            task,
            server=station.servers.trusted,
            scratch=scratch,
            gate=station.gate,
            threads=site.hardware.cores,
            device=site.hardware.kind,
        )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def admit(site: Site, task: Task, parameters: FilterParameters) -> Baseline | RejectedTask:
    """Run the filter on one task. Raises `SandboxFault`."""
    found = examine(_station(site).judge, site.hardware, task, parameters)
    if isinstance(found, Rejection):
        return RejectedTask(task=task, reason=found.reason, detail=found.detail)
    return found
