"""What tests of several packages share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def inductor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where `torch.compile` keeps what it builds: its precompiled headers take fifteen seconds, once."""
    folder = tmp_path_factory.mktemp("compiled") / "inductor"
    folder.mkdir()
    return folder
