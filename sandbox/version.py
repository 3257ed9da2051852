"""Versions of code that decides: hashes that change when behaviour may, and not when a comment does."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from sandbox.syntax import parse
from schemas.parameters import JudgeParameters
from schemas.record import ID_LENGTH, content_id

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_HERE = Path(__file__).parent


def code_hash(paths: Sequence[Path]) -> str:
    """A hash of source files and of all Python and header files below the folders in `paths`.

    Python counts by its syntax tree without docstrings, headers by their text. File names count, because a module's
    name is part of what imports mean; the place of the checkout does not.
    """
    digest = hashlib.sha256()
    for root in paths:
        files = [root] if root.is_file() else sorted(p for p in root.rglob("*") if p.suffix in (".py", ".h"))
        for file in files:
            digest.update(f"{file.relative_to(root.parent).as_posix()}\0{_meaning(file)}\0".encode())
    return digest.hexdigest()[:ID_LENGTH]


def _meaning(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return text
    tree = parse(text)
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)


@cache
def build_version() -> str:
    """The version of everything that turns a candidate's files into extensions."""
    return code_hash([_HERE / "extension"])


@cache
def judge_version(parameters: JudgeParameters) -> str:
    """The version of the judge: its code, and how hard it was told to look."""
    code = code_hash([_HERE, _HERE.parent / "schemas" / "evaluation.py", _HERE.parent / "schemas" / "baseline.py"])
    return content_id([code, parameters.model_dump(mode="json")])
