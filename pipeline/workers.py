"""Dask workers: processes that build, and one a device that judges."""

from __future__ import annotations

import contextlib
import itertools
import logging
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal, ParamSpec, TypeVar, get_args

import dask
from distributed import CancelledError, Client, KilledWorker, Nanny, Scheduler, SpecCluster
from distributed.comm import CommClosedError
from distributed.scheduler import NoValidWorkerError

from pipeline.errors import InfrastructureFault, UserError
from pipeline.jobs import DEVICE_NUMBER
from pipeline.machine import Crew
from pipeline.settings import Settings
from sandbox.errors import SandboxFault
from sandbox.forkserver import KEEP_MEMORY

P = ParamSpec("P")
T = TypeVar("T")
Resource = Literal["BUILD", "DEVICE"]

ONE_DEVICE = "DEVICE-"
"""Beside `DEVICE`, a judge offers this with the number of its device. A job that asks for it waits for that judge, also
while it is being started again."""
LOST = (KilledWorker, CommClosedError, NoValidWorkerError)
"""What a job ends with when the worker under it is gone."""
EXHAUSTED = (OSError, MemoryError)
"""What a job raises when its machine has run out of disk, memory or descriptors."""
CONNECT_SECONDS = 20.0
LOUD = ("distributed", "distributed.client")
"""Loggers that would tell in tracebacks what is told in sentences here."""
CONFIGURATION = {
    # A job is tried once: whether to try again is ours to decide and to record.
    "distributed.scheduler.allowed-failures": 0,
    # A worker that does not come back must end the wait for it, which otherwise lasts for ever.
    "distributed.scheduler.no-workers-timeout": "120s",
    # Nothing may wake up often on cores that are timed: no sampling of the jobs' stacks, few ticks of the event loop.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.tick.cycle": "10s",
    "distributed.admin.system-monitor.interval": "10s",
}


def worker_environment(cores: int) -> dict[str, str]:
    """What a worker process has to find when it starts, in place of Dask's own choice.

    Dask gives a worker one thread and has it hand freed memory back at once. A judge computes truths on all cores
    between its clocks, in tensors so large that their page faults would cost as much as the arithmetic; and its
    threads must not go on spinning on cores that it is about to time.
    """
    return {"OMP_NUM_THREADS": str(cores), "OMP_WAIT_POLICY": "passive", "GLIBC_TUNABLES": KEEP_MEMORY}


class Workers:
    """A connection to workers. Use `Workers.start`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._address: str = client.scheduler.address
        self._numbers = itertools.count()
        self._homes: dict[str, str] = {}
        """Which judge keeps what open: a task's candidates go where its references and expected outputs are."""
        self._busy: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        """Seconds that jobs ran on the workers, by the job's name."""

    @classmethod
    @asynccontextmanager
    async def start(cls, settings: Settings, crew: Crew) -> AsyncIterator[Workers]:
        """Local workers, or those of the scheduler in the settings.

        Raises `UserError` where that scheduler does not answer.
        """
        for name in LOUD:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        async with contextlib.AsyncExitStack() as stack:
            environment = {"distributed.nanny.pre-spawn-environ": worker_environment(crew.threads)}
            stack.enter_context(dask.config.set({**CONFIGURATION, **environment}))
            if settings.scheduler is not None:
                client = await stack.enter_async_context(await _connect(settings.scheduler))
            else:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="quarry-dask-", dir=settings.scratch))
                cluster = await stack.enter_async_context(_local(folder, crew))
                client = await stack.enter_async_context(Client(cluster, asynchronous=True))
                await client.wait_for_workers(crew.builders + len(crew.devices))
            workers = cls(client)
            await workers.check()
            yield workers

    async def judge(self, home: str, key: str, job: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of a job on a judge: the same for all jobs of one `home` as long as it lives.

        Raises as `run` does.
        """
        place = await self._place(home)
        self._busy[place] += 1
        try:
            return await self._submit(place, key, job, args, kwargs)
        except InfrastructureFault:
            self._homes.pop(home, None)
            raise
        finally:
            self._busy[place] -= 1

    async def run(self, resource: Resource, key: str, job: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of a job on any worker that offers the resource.

        Raises `InfrastructureFault` where the worker died, its machine ran out of something or the sandbox failed,
        `UserError` where the scheduler is gone, and what the job raises otherwise.
        """
        return await self._submit(resource, key, job, args, kwargs)

    async def _place(self, home: str) -> str:
        """The resource of the judge where a home is, or of the least busy one, which then becomes it."""
        info: dict[str, Any] = await self._client.scheduler.identity(n_workers=-1)
        offered = {name for worker in info["workers"].values() for name in worker["resources"]}
        judges = sorted(name for name in offered if name.startswith(ONE_DEVICE)) or ["DEVICE"]
        if self._homes.get(home) not in judges:
            held = Counter(self._homes.values())
            self._homes[home] = min(judges, key=lambda name: (self._busy[name], held[name]))
        return self._homes[home]

    async def _submit(self, resource: str, key: str, job: Callable[..., T], args: Any, kwargs: Any) -> T:
        name = f"{key}-{next(self._numbers)}"  # a key that failed once must not answer for the next attempt
        future = self._client.submit(_timed, job, args, kwargs, resources={resource: 1}, key=name, pure=False)
        try:
            timed: tuple[T, float] = await future
            self.seconds[job.__name__] += timed[1]
            return timed[0]
        except SandboxFault as error:
            raise InfrastructureFault(str(error)) from error
        except LOST as error:
            raise InfrastructureFault(f"the worker was lost ({type(error).__name__})") from error
        except EXHAUSTED as error:
            raise InfrastructureFault(f"the worker's machine failed ({type(error).__name__}: {error})") from error
        except CancelledError as error:
            raise UserError(
                f"the Dask scheduler at {self._address} went away: start it and run again; what was judged is kept"
            ) from error
        finally:
            future.release()

    async def check(self) -> None:
        """Raise `UserError` where no worker offers a resource: Dask would wait for one in silence, for ever."""
        info: dict[str, Any] = await self._client.scheduler.identity(n_workers=-1)
        offered = {name for worker in info["workers"].values() for name in worker["resources"]}
        for resource in get_args(Resource):
            if resource not in offered:
                raise UserError(
                    f"no worker of {self._address} offers the resource {resource}: "
                    f"start one with `dask worker --resources {resource}=1 --nthreads 1`"
                )


def _timed(job: Callable[..., T], args: Any, kwargs: Any) -> tuple[T, float]:
    """A job's result, and its seconds on the worker."""
    start = time.perf_counter()
    return job(*args, **kwargs), time.perf_counter() - start


async def _connect(address: str) -> Client:
    client = Client(address, asynchronous=True, timeout=CONNECT_SECONDS)
    try:
        return await client
    except (OSError, TimeoutError, ValueError) as error:
        await client.close(timeout=1)
        raise UserError(
            f"the Dask scheduler at {address} does not answer ({error}): start it, or unset QUARRY_SCHEDULER"
        ) from error


def _local(folder: str, crew: Crew) -> SpecCluster:
    """A scheduler in this process and one process a worker. Memory is limited in the sandbox, not here."""

    def worker(resource: Resource, device: int) -> dict[str, Any]:
        shown = crew.devices[device]
        environment = {DEVICE_NUMBER: str(device)} | ({"CUDA_VISIBLE_DEVICES": shown} if shown else {})
        return {
            "cls": Nanny,
            "options": {
                "nthreads": 1,
                "resources": {resource: 1} | ({f"{ONE_DEVICE}{device}": 1} if resource == "DEVICE" else {}),
                "env": environment,
                "memory_limit": 0,
                "local_directory": folder,
                "dashboard": False,
                "silence_logs": logging.CRITICAL,
            },
        }

    count = len(crew.devices)
    workers = {f"build-{number}": worker("BUILD", number % count) for number in range(crew.builders)}
    workers |= {f"judge-{number}": worker("DEVICE", number) for number in range(count)}
    # Without an address of its own the scheduler's web server would listen on all interfaces, dashboard or not.
    places = {"port": 0, "host": "127.0.0.1", "dashboard": False, "dashboard_address": "127.0.0.1:0"}
    scheduler = {"cls": Scheduler, "options": places}
    return SpecCluster(workers=workers, scheduler=scheduler, asynchronous=True, silence_logs=logging.CRITICAL)
