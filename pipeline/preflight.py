"""Looks for what a long run will need before it starts, so that it does not fail half way for lack of it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from pipeline.errors import UserError
from pipeline.settings import Settings

SCRATCH_BYTES = 512 << 20
CACHE_BYTES = 1 << 30


def preflight(settings: Settings) -> None:
    """Check compiler, scratch and cache folders. Raises `UserError` naming what is missing and the remedy."""
    if shutil.which("g++") is None:
        raise UserError("no C++ compiler: `g++` is not on PATH; install it (Debian, Ubuntu: apt-get install g++)")
    _check_folder(settings.scratch, SCRATCH_BYTES, "the folder for temporary files", "TMPDIR")
    try:
        settings.cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"the cache folder {settings.cache} cannot be made ({error.strerror}): set QUARRY_CACHE to another one"
        ) from error
    _check_folder(settings.cache, CACHE_BYTES, "the cache folder", "QUARRY_CACHE")


def _check_folder(folder: Path, needed: int, what: str, variable: str) -> None:
    remedy = f"free space there or set {variable} to another folder"
    if not folder.is_dir():
        raise UserError(f"{what} {folder} does not exist: make it, or set {variable} to another one")
    try:
        with tempfile.NamedTemporaryFile(dir=folder) as probe:
            probe.write(b"\0" * 4096)
            probe.flush()
    except OSError as error:
        raise UserError(f"{what} {folder} cannot be written to ({error.strerror}): {remedy}") from error
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise UserError(f"{what} {folder} has {free >> 20} MiB free, at least {needed >> 20} MiB are needed: {remedy}")
