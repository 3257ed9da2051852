"""If these fail, a run that was killed measures again what it knew, or loses it, or dies in a traceback."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.errors import UserError
from pipeline.ledger import Ledger, ledger_key


def test_what_was_put_is_got(tmp_path: Path):
    with Ledger.open(tmp_path / "new" / "ledger.sqlite") as ledger:
        for number in range(1200):
            ledger.put(f"k{number}", "build" if number % 3 else "verify", str(number))
        ledger.put("k1", "build", "1, again")
        assert ledger.get("k1") == "1, again"
        assert ledger.get("nothing") is None
        found = ledger.get_many([f"k{number}" for number in range(-5, 1300)])
    assert found == {f"k{n}": str(n) for n in range(1200)} | {"k1": "1, again"}
    assert Ledger.peek(tmp_path / "new" / "ledger.sqlite") == {"build": 800, "verify": 400}


def test_a_key_is_the_parts_and_nothing_else():
    keys = [
        ledger_key("verify"), ledger_key("build"), ledger_key("build", "a", "b"), ledger_key("build", "ab"),
        ledger_key("build", ["a", "b"]), ledger_key("build", 1), ledger_key("build", "1"), ledger_key("build", True),
        ledger_key("build", None), ledger_key("build", {"x": 1, "y": 2}), ledger_key("build", {"x": 2, "y": 1}),
    ]  # fmt: skip
    assert len(set(keys)) == len(keys), "two values would overwrite each other"
    assert ledger_key("build", {"y": 2, "x": 1}) == keys[-2], "what was known would be measured again"


WRITER = """
import sys
from pathlib import Path
from pipeline.ledger import Ledger
with Ledger.open(Path(sys.argv[1])) as ledger:
    number = 0
    while True:
        ledger.put(str(number), "kind", "x" * 1000)
        print(number, flush=True)
        number += 1
"""


def test_sigkill_loses_nothing_that_was_put(tmp_path: Path):
    path = tmp_path / "ledger.sqlite"
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    for line in writer.stdout:
        if int(line) == 300:
            with pytest.raises(UserError, match="in use by another run"):
                Ledger.open(path)
            assert Ledger.peek(path)["kind"] > 300, "`quarry status` reads beside a run"
            writer.kill()
            break
    last = [300, *map(int, writer.stdout.read().split()[:-1])][-1]
    writer.stdout.close()
    assert writer.wait() == -signal.SIGKILL
    with Ledger.open(path) as ledger:  # the dead writer's lock does not outlive it
        assert len(ledger.get_many([str(number) for number in range(last + 1)])) == last + 1


@pytest.mark.parametrize("place", ["file/ledger.sqlite", "folder", "noise.sqlite"])
def test_an_unusable_place_is_named_with_the_remedy(tmp_path: Path, place: str):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "noise.sqlite").write_bytes(b"This is no database. " * 200)
    with pytest.raises(UserError, match=rf"the ledger {tmp_path / place} .*QUARRY_LEDGER"):
        Ledger.open(tmp_path / place)
    with pytest.raises(UserError, match="the ledger"):  # and again: the failure held on to nothing
        Ledger.open(tmp_path / place)


def test_a_damaged_ledger_is_named_when_it_is_read(tmp_path: Path):
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path) as ledger:
        for number in range(400):
            ledger.put(str(number), "kind", "x" * 1000)
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + b"\xa5" * (len(whole) - 8192))
    with Ledger.open(path) as ledger, pytest.raises(UserError, match=r"malformed.*move that file away"):
        ledger.get("17")
    with pytest.raises(UserError, match="cannot be read"):
        Ledger.peek(path)


def test_a_ledger_that_is_not_there_holds_nothing(tmp_path: Path):
    assert Ledger.peek(tmp_path / "none.sqlite") == {}
    assert not (tmp_path / "none.sqlite").exists()
