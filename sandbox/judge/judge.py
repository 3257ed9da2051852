"""The judge of one device: keeps benches open, forks runners, turns what happens into outcomes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import torch
from pydantic import JsonValue

from sandbox.channel import Parameters
from sandbox.device import Device
from sandbox.errors import SandboxFault
from sandbox.extension.build import Artefact
from sandbox.extension.diagnostics import own_frames
from sandbox.gate import Gate
from sandbox.judge.bench import Bench
from sandbox.judge.bullpen import Bullpen
from sandbox.judge.outcome import Outcome
from sandbox.judge.profile import check_roofline, profile
from sandbox.judge.runner_host import RunnerEnded, RunnerHost
from sandbox.judge.standby import Standby
from sandbox.judge.verify import Checker, Suspicion, verification, verify
from sandbox.limits import limits_on
from sandbox.servers import Servers
from schemas.baseline import Baseline
from schemas.candidate import Candidate
from schemas.evaluation import Profile, Verdict, Verification
from schemas.hardware import Hardware
from schemas.parameters import JudgeParameters
from schemas.task import Task

OPEN_BENCHES = 2
"""Benches kept open at once: episodes of a few tasks run interleaved, and each bench is gigabytes."""
CONFINEMENT = "process-group+rlimits+no_new_privs"


class Judged(NamedTuple):
    """A candidate with what its build left."""

    task: Task
    candidate: Candidate
    artefacts: Sequence[Artefact]
    baseline: Baseline


class Judge:
    """Judges candidates on one device. One instance per device: nothing else may time there."""

    def __init__(
        self, parameters: JudgeParameters, *, hardware: Hardware, device: Device, gate: Gate, servers: Servers
    ) -> None:
        """A judge that forks its runners from `servers`, which stay its owner's to stop."""
        self._parameters, self._hardware, self._device = parameters, hardware, device
        self._gate, self._servers = gate, servers
        self._benches: OrderedDict[str, Bench] = OrderedDict()
        self._bullpen = Bullpen(self._fork)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    @property
    def hardware(self) -> Hardware:
        """The machine that it judges on."""
        return self._hardware

    @property
    def gate(self) -> Gate:
        """The gate to the device."""
        return self._gate

    def close(self) -> None:
        """End all runners."""
        self._bullpen.close()
        while self._benches:
            self._close_bench()

    def bench(self, task: Task) -> Bench:
        """The task's bench, opened if need be; the least recently used one gives way."""
        if task.task_id not in self._benches:
            while len(self._benches) >= OPEN_BENCHES:
                self._close_bench()
            self._benches[task.task_id] = Bench(
                task,
                self._parameters,
                servers=self._servers,
                hardware=self._hardware,
                device=self._device,
            )
        self._benches.move_to_end(task.task_id)
        return self._benches[task.task_id]

    def _close_bench(self) -> None:
        task_id, bench = self._benches.popitem(last=False)
        self._bullpen.forget(task_id)
        bench.close()

    def verify(self, judged: Judged) -> Outcome:
        """Is it right? A null verdict means that every planned call was; its runner then waits for `profile`."""
        checker = Checker(judged.baseline.tolerance)

        def work(bench: Bench, host: RunnerHost) -> tuple[Verification, Profile | None]:
            return verify(bench, host, checker), None

        return self._judge(judged, checker, work)

    def profile(self, judged: Judged) -> Outcome:
        """How fast is it? A null verdict comes with times.

        Raises `sandbox.judge.profile.NoiseFault`.
        """
        checker = Checker(judged.baseline.tolerance)

        def work(bench: Bench, host: RunnerHost) -> tuple[Verification, Profile | None]:
            for role in ("eager", "compiled"):  # their contexts open before any clock runs
                bench.baseline(role)
            self._bullpen.settle()
            before = self._device.state()
            times = profile(bench, host, judged.baseline, checker, self._gate)
            if times is not None:
                times = times.model_copy(update={"before": before, "after": self._device.state()})
                check_roofline(times, self._hardware)
            return verification(checker, checker.calls, host.parameters), times

        return self._judge(judged, checker, work)

    def _judge(
        self,
        judged: Judged,
        checker: Checker,
        work: Callable[[Bench, RunnerHost], tuple[Verification, Profile | None]],
    ) -> Outcome:
        bench = self.bench(judged.task)
        mode = Parameters.NONE
        try:
            with self._runner(bench, judged) as host:
                mode = host.parameters
                found, times = work(bench, host)
                if found.passed and times is None:
                    self._bullpen.park(judged.task.task_id, judged.candidate.candidate_id, host)
        except RunnerEnded as end:
            self._probe()
            verdict = Verdict.TIMED_OUT if end.how == "timed_out" else Verdict.CRASHED
            return _outcome(verdict, _why(end, bench), _partial(checker, mode))
        except Suspicion as suspicion:
            return _outcome(Verdict.SUSPECT, str(suspicion), _partial(checker, mode), rule=suspicion.rule)
        if not found.passed:
            return _outcome(Verdict.WRONG, found.message, found)
        return _outcome(None, "", found, profile=times)

    @contextmanager
    def _runner(self, bench: Bench, judged: Judged) -> Iterator[RunnerHost]:
        """The candidate's parked runner, or a fresh one; ended afterwards unless it was parked meanwhile."""
        host = self._bullpen.resume(judged.candidate.candidate_id) or self._load(bench, judged)
        try:
            yield host
        finally:
            if not self._bullpen.holds(host):
                host.close()

    def _load(self, bench: Bench, judged: Judged) -> RunnerHost:
        """A runner with the candidate loaded, in a scratch folder of its own. Raises `RunnerEnded`."""
        runner = self._bullpen.take()
        workspace = runner.scratch / "workspace"
        write_files(judged.candidate, workspace)
        artefacts: list[JsonValue] = [artefact.model_dump(mode="json") for artefact in judged.artefacts]
        host = bench.candidate(runner, {"workspace": str(workspace), "artefacts": artefacts})
        if self._device.kind == "cuda":
            self._bullpen.prepare()
        return host

    def _fork(self) -> Standby:
        limits = limits_on(self._device.kind, self._parameters.memory_mb << 20)
        return Standby(self._servers.untrusted, self._device, threads=self._hardware.cores, limits=limits)

    def _probe(self) -> None:
        """See that the device outlived a runner's end. Raises `SandboxFault` where it did not."""
        try:
            alive = bool(torch.ones(2, device=self._device.place).sum() == 2)
        except RuntimeError as error:
            raise SandboxFault(f"{self._hardware.name} does not answer after a crash: {error}") from error
        if not alive:
            raise SandboxFault(f"{self._hardware.name} computes wrongly after a crash")


def write_files(candidate: Candidate, workspace: Path) -> None:
    """Write a candidate's files below `workspace`; paths were validated to stay inside."""
    for file in candidate.files:
        target = workspace / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(file.text)


def _outcome(
    verdict: Verdict | None,
    message: str,
    found: Verification | None,
    *,
    rule: str | None = None,
    profile: Profile | None = None,
) -> Outcome:
    return Outcome(
        verdict=verdict, rule=rule, message=message, verification=found, profile=profile, confinement=CONFINEMENT
    )


def _partial(checker: Checker, mode: Parameters) -> Verification | None:
    """What was seen before the end; never a pass, since one call more was planned than was good."""
    return verification(checker, checker.calls + 1, mode) if checker.calls else None


def _why(end: RunnerEnded, bench: Bench) -> str:
    """How the runner ended, in words for the policy: its own traceback without our frames and paths."""
    if end.how == "timed_out":
        return f"did not finish a block of calls within {bench.parameters.run_deadline_s:g} s"
    return f"crashed: {own_frames(end.log)}"
