"""If these fail, an edit of a comment throws away a week of verdicts, or a change of the judge keeps them."""

from __future__ import annotations

import ast
import gc
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandbox.version import code_hash


@pytest.fixture
def eager_switching() -> Iterator[None]:
    """Threads change places often, inside of C code that allocates too, and finalizers parse."""

    def pause(*_: object) -> None:
        time.sleep(0.0001)
        ast.parse("def f(x):\n    return [x, (x + 1) * 2]\n")

    thresholds = gc.get_threshold()
    gc.callbacks.append(pause)
    gc.set_threshold(50)
    yield
    gc.set_threshold(*thresholds)
    gc.callbacks.remove(pause)


@pytest.mark.usefixtures("eager_switching")
def test_threads_hash_side_by_side(tmp_path: Path):
    file = tmp_path / "kernel.py"
    file.write_text("".join(f"def f{n}(x):\n    return [x + {n} for _ in range((x * 2) ** {n})]\n" for n in range(40)))
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: code_hash([file]), range(32)))) == 1


def test_comments_do_not_change_a_version_but_code_does(tmp_path: Path):
    file = tmp_path / "policy.py"
    file.write_text('"""Why."""\nX = 1\n')
    first = code_hash([file])
    file.write_text('"""Why not."""\n# a comment\nX = 1\n')
    assert code_hash([file]) == first
    file.write_text("X = 2\n")
    assert code_hash([file]) != first
