"""If these fail, a run writes where nobody looks, or finds half way that it lacks what it needs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline import preflight as module
from pipeline.errors import UserError
from pipeline.preflight import check_folder, preflight
from pipeline.settings import Settings, load_settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Usable settings, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scratch").mkdir()
    return load_settings({"QUARRY_CACHE": str(tmp_path / "cache"), "TMPDIR": str(tmp_path / "scratch")})


def test_the_environment_decides_where_things_are():
    found = load_settings({"QUARRY_CACHE": "/c", "QUARRY_LEDGER": "/l/x.sqlite", "QUARRY_SCHEDULER": "tcp://h:1"})
    assert (found.cache, found.ledger, found.scheduler) == (Path("/c"), Path("/l/x.sqlite"), "tcp://h:1")
    assert load_settings({"XDG_CACHE_HOME": "/x"}).ledger == Path("/x/kernelquarry/ledger.sqlite")
    assert load_settings({"QUARRY_LEDGER": "", "XDG_CACHE_HOME": "/x", "QUARRY_SCHEDULER": ""}).scheduler is None


@pytest.mark.parametrize("environment", [{}, {"XDG_CACHE_HOME": "relative"}])
def test_the_default_is_the_users_cache_folder(environment: dict[str, str]):
    assert load_settings(environment).cache == Path("~/.cache/kernelquarry").expanduser()


@pytest.mark.parametrize("name", ["QUARRY_LEDGER", "QUARRY_CACHE"])
def test_a_relative_place_is_refused(name: str):
    """DVC may run a stage in another folder, where a relative ledger would start empty."""
    with pytest.raises(UserError, match=f"{name} is 'x/y', which is relative: set it to an absolute path"):
        load_settings({name: "x/y"})


def test_a_healthy_machine_passes_and_nothing_is_left_behind(settings: Settings):
    preflight(settings)
    assert list(settings.scratch.iterdir()) == []
    assert settings.cache.is_dir()


def test_no_compiler_on_path(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"`g\+\+` is not on PATH; install it"):
        preflight(settings)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'fatal error: Python.h: No such file' >&2; exit 1", r"Python\.h.*install Python's headers"),
        ("echo 'x.cpp:1: error: no OpenMP' >&2; exit 1", r"no OpenMP\): mend the g\+\+ on PATH"),
        ("exit 1", r"cannot build an OpenMP extension \(exit status 1\): mend"),
    ],
)
def test_a_compiler_that_does_not_work(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
):
    (tmp_path / "g++").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "g++").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(UserError, match=said):
        preflight(settings)


def test_a_missing_scratch_folder(settings: Settings):
    settings.scratch.rmdir()
    with pytest.raises(UserError, match=rf"{settings.scratch} does not exist: make it, or set TMPDIR"):
        preflight(settings)


def test_a_cache_that_cannot_be_made(settings: Settings):
    settings.cache.write_text("a file")
    with pytest.raises(UserError, match=r"cache folder .* cannot be made .* set QUARRY_CACHE"):
        preflight(settings)


def test_too_little_room_says_how_much_is_needed(tmp_path: Path):
    with pytest.raises(UserError, match=r"MiB free and at least \d+ are needed: free space there, or set TMPDIR"):
        check_folder(tmp_path, 1 << 60, "the folder for temporary files", "set TMPDIR to another folder")


def test_too_little_memory_says_how_much_is_needed(settings: Settings, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MEMORY_BYTES", 1 << 60)
    with pytest.raises(UserError, match=r"MiB of memory are available .* close other programs"):
        preflight(settings)


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk without room."""
    folder = tmp_path / "full"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("may not mount a small disk")
    try:
        with pytest.raises(OSError, match="No space left"):
            (folder / "filler").write_bytes(b"x" * 65536)
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_scratch_folder(full: Path):
    with pytest.raises(UserError, match=r"cannot be written to \(No space left on device\): free space there, or go"):
        check_folder(full, 1, "the folder", "go elsewhere")
