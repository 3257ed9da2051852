"""The only reader of environment variables: what belongs to the machine and not to the run's parameters."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pydantic import PositiveInt

from pipeline.errors import UserError
from schemas.record import Record


class Settings(Record):
    """Where this machine keeps things."""

    cache: Path
    """Folder that lasts: built extensions, compiled baselines, lock files (`QUARRY_CACHE`)."""
    ledger: Path
    """SQLite file of everything measured (`QUARRY_LEDGER`): absolute, and never an output of DVC."""
    scheduler: str | None
    """Address of a running Dask scheduler (`QUARRY_SCHEDULER`); null starts local workers."""
    scratch: Path
    """Folder for temporary files (`TMPDIR`)."""
    simulated_devices: PositiveInt = 1
    """Judges that share the cores as if they were as many devices (`QUARRY_SIMULATED_DEVICES`): for tests."""


def load_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings that an environment stands for. Raises `UserError`."""
    cache = _absolute("QUARRY_CACHE", environment.get("QUARRY_CACHE") or _caches(environment) + "/kernelquarry")
    ledger = _absolute("QUARRY_LEDGER", environment.get("QUARRY_LEDGER") or str(cache / "ledger.sqlite"))
    # An unusable TMPDIR must be said, not silently replaced as `tempfile.gettempdir` would.
    scratch = Path(environment["TMPDIR"]) if environment.get("TMPDIR") else Path(tempfile.gettempdir())
    return Settings(
        cache=cache,
        ledger=ledger,
        scheduler=environment.get("QUARRY_SCHEDULER") or None,
        scratch=scratch.absolute(),
        simulated_devices=_count("QUARRY_SIMULATED_DEVICES", environment),
    )


def _caches(environment: Mapping[str, str]) -> str:
    """The user's cache folder; a relative XDG_CACHE_HOME counts as unset, as its specification demands."""
    named = environment.get("XDG_CACHE_HOME", "")
    return named if Path(named).is_absolute() else "~/.cache"


def _count(name: str, environment: Mapping[str, str]) -> int:
    text = environment.get(name) or "1"
    if not text.isdecimal() or int(text) < 1:
        raise UserError(f"{name} is {text!r}: set it to a whole number from 1, or unset it")
    return int(text)


def _absolute(name: str, text: str) -> Path:
    try:
        path = Path(text).expanduser()
    except RuntimeError as error:
        raise UserError(f"{text} cannot be found, since no home folder is known: set {name} to a path") from error
    if not path.is_absolute():
        raise UserError(f"{name} is {text!r}, which is relative: set it to an absolute path, or unset it")
    return path
