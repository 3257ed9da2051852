"""Looks for what a long run will need before it starts, so that it does not fail half way for lack of it."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

from pipeline import paths
from pipeline.errors import UserError
from pipeline.settings import Settings

SCRATCH_BYTES = 512 << 20
CACHE_BYTES = 1 << 30
DATA_BYTES = 64 << 20
MEMORY_BYTES = 2 << 30
"""Below this the fork servers of a judge and a builder, with torch in each, push each other into swap."""
COMPILER = "g++"
PROBE = "#include <Python.h>\n#include <omp.h>\n#include <vector>\nint threads() { return omp_get_max_threads(); }\n"


def preflight(settings: Settings) -> None:
    """Check folders, memory and compiler. Raises `UserError` naming what is missing and the remedy."""
    check_folder(settings.scratch, SCRATCH_BYTES, "the folder for temporary files", "set TMPDIR to another folder")
    _make(settings.cache, "the cache folder", "set QUARRY_CACHE to another one")
    check_folder(settings.cache, CACHE_BYTES, "the cache folder", "set QUARRY_CACHE to another folder")
    _make(paths.DATA, "the data folder", "run in a folder that you may write to")
    check_folder(paths.DATA, DATA_BYTES, "the data folder", "run in a folder that you may write to")
    _check_memory()
    _check_compiler(settings.scratch)


def check_folder(folder: Path, needed: int, what: str, otherwise: str) -> None:
    """Raise `UserError` unless the folder exists, takes a file and has `needed` bytes free."""
    if not folder.is_dir():
        raise UserError(f"{what} {folder} does not exist: make it, or {otherwise}")
    try:
        with tempfile.NamedTemporaryFile(dir=folder) as probe:
            probe.write(b"\0" * 4096)
            probe.flush()
    except OSError as error:
        raise UserError(
            f"{what} {folder} cannot be written to ({error.strerror}): free space there, or {otherwise}"
        ) from error
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise UserError(
            f"{what} {folder} has {free >> 20} MiB free and at least {needed >> 20} are needed: "
            f"free space there, or {otherwise}"
        )


def _make(folder: Path, what: str, otherwise: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{what} {folder} cannot be made ({error.strerror}): {otherwise}") from error


def _check_memory() -> None:
    lines = Path("/proc/meminfo").read_text().splitlines()
    available = next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), MEMORY_BYTES)
    if available < MEMORY_BYTES:
        raise UserError(
            f"{available >> 20} MiB of memory are available and at least {MEMORY_BYTES >> 20} are needed: "
            "close other programs"
        )


def _check_compiler(scratch: Path) -> None:
    """Compile and link a few lines that need what every candidate and every compiled baseline needs."""
    if shutil.which(COMPILER) is None:
        raise UserError(
            f"no C++ compiler: `{COMPILER}` is not on PATH; install it (Debian, Ubuntu: apt-get install g++)"
        )
    with tempfile.TemporaryDirectory(dir=scratch, prefix="quarry-probe-") as folder:
        source = Path(folder) / "probe.cpp"
        source.write_text(PROBE)
        include = sysconfig.get_path("include")
        flags = ["-std=c++17", "-fopenmp", "-shared", "-fPIC", f"-I{include}"]
        built = subprocess.run(
            [COMPILER, *flags, str(source), "-o", str(source.with_suffix(".so"))],
            capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
    if built.returncode == 0:
        return
    said = next((line for line in built.stderr.splitlines() if "error" in line), f"exit status {built.returncode}")
    remedy = (
        "install Python's headers (Debian, Ubuntu: apt-get install python3-dev)"
        if "Python.h" in said
        else f"mend the {COMPILER} on PATH (Debian, Ubuntu: apt-get install --reinstall g++)"
    )
    raise UserError(f"`{COMPILER}` cannot build an OpenMP extension ({said}): {remedy}")
