"""What `ModelNew` takes over from a task's source: the constructor, and the names that it needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sandbox.syntax import parse


def _bound(node: ast.stmt) -> Iterator[str]:
    """Names that a top-level statement defines."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name.split(".")[0] for alias in names)
        case ast.Assign(targets=targets):
            yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def _used(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


class ModelSource:
    """A task's source taken apart."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.tree = parse(source)
        classes = {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef)}
        self.model = classes["Model"]
        methods = {node.name: node for node in self.model.body if isinstance(node, ast.FunctionDef)}
        self.init = methods.get("__init__")
        self.forward = methods["forward"]

    def constructor(self) -> list[str]:
        """The lines of `__init__`, indented as a method; none if the model has none."""
        if self.init is None:
            return []
        segment = ast.get_source_segment(self.source, self.init, padded=True) or ""
        return [line.replace("super(Model, self)", "super(ModelNew, self)") for line in segment.splitlines()]

    def signature(self) -> str:
        """The arguments of `forward` as written, `self` included."""
        return ast.unparse(self.forward.args)

    def preamble(self) -> list[str]:
        """The top-level statements that the constructor and the signature need, in order, as written."""
        needed = _used(self.forward.args) | (_used(self.init) if self.init is not None else set())
        kept: set[int] = set()
        changed = True
        while changed:
            changed = False
            for place, node in enumerate(self.tree.body):
                if place not in kept and node is not self.model and needed & set(_bound(node)):
                    kept.add(place)
                    needed |= _used(node)
                    changed = True
        texts = [ast.get_source_segment(self.source, self.tree.body[place]) or "" for place in sorted(kept)]
        return [text for text in texts if text not in ("import torch", "import torch.nn as nn")]
