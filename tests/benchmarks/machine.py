"""What the benchmarks that need a judge share: the machine at hand, in folders that do not outlast them."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.jobs import Site, Station
from pipeline.ledger import Ledger
from pipeline.machine import hardware
from sandbox.device import Kind
from schemas.hardware import Hardware
from schemas.parameters import JudgeParameters


def arguments(description: str | None) -> argparse.ArgumentParser:
    """A parser with what all benchmarks take."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--json", type=Path, default=None, help="where the raw samples go")
    return parser


@contextmanager
def site(kind: Kind, parameters: JudgeParameters) -> Iterator[tuple[Site, Ledger, Path]]:
    """A site with an empty cache and an empty ledger, in a folder that goes with it."""
    with tempfile.TemporaryDirectory(prefix="quarry-benchmark-") as name:
        folder = Path(name)
        with Ledger.open(folder / "ledger.sqlite") as ledger:
            yield Site(cache=folder, hardware=hardware(ledger, kind), judge=parameters), ledger, folder


@contextmanager
def station(kind: Kind, parameters: JudgeParameters) -> Iterator[Station]:
    """A judge in this process."""
    with site(kind, parameters) as (place, _ledger, _folder):
        opened = Station(place)
        try:
            yield opened
        finally:
            opened.close()


def describe(machine: Hardware) -> str:
    """The machine in one line."""
    driver = f", driver {machine.driver_version}" if machine.driver_version else ""
    return f"{machine.name}, {machine.cores} cores, torch {machine.torch_version}, {machine.compiler}{driver}"


def save(path: Path | None, content: object) -> None:
    """Write raw samples, if anybody wants them."""
    if path is not None:
        path.write_text(json.dumps(content, indent=1))
        print(f"raw samples: {path}")
