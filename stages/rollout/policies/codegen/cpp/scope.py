"""Statements in nested loops: every value is computed in the outermost loop that knows all it depends on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from schemas.tensor import Dtype
from stages.rollout.policies.codegen.choices import Transcendentals
from stages.rollout.policies.codegen.cpp.text import CTYPES, index_text, is_call, literal, operation
from stages.rollout.policies.codegen.expr import Expr
from stages.rollout.policies.codegen.index import Axis, Index

IndexText = Callable[[Index], str]
Row = Callable[[str, Index, IndexText], str]
"""How a scratch value is addressed: its name, its position, and how to write positions."""

LONGEST = 88
"""A text longer than this gets a name."""


class Names:
    """What a kernel's tensors and axes are called, and where its values come from."""

    def __init__(
        self,
        pointers: dict[str, str],
        axes: dict[Axis, str],
        row: Row,
        source: Transcendentals,
    ) -> None:
        self.pointers = pointers
        self.axes = axes
        self.row = row
        self.source = source
        self.counter = 0
        self.uses: Counter[str] = Counter()
        """How often the statements to come use each value."""
        self.called: set[str] = set()
        """Functions that the source needs."""

    def fresh(self) -> str:
        """A new name for a value."""
        self.counter += 1
        return f"v{self.counter}"


class Scope:
    """The body of one loop, or of the function."""

    def __init__(self, names: Names, axes: Iterable[Axis], parent: Scope | None = None, depth: int = 0) -> None:
        self.names = names
        self.parent = parent
        self.axes: frozenset[Axis] = frozenset(axes) | (parent.axes if parent else frozenset())
        self.depth = depth
        self.lines: list[str] = []
        self.known: dict[str, str] = {}

    def add(self, line: str) -> None:
        """A statement at this depth; `#pragma` lines start the line."""
        self.lines.append(line if line.startswith("#") else "  " * self.depth + line)

    def inner(self, axes: Iterable[Axis] = ()) -> Scope:
        """A block inside this one."""
        return Scope(self.names, axes, self, self.depth + 1)

    def close(self, head: str, body: Scope) -> None:
        """Writes an inner block behind its head."""
        self.add(head + " {")
        self.lines += body.lines
        self.add("}")

    def index(self, index: Index) -> str:
        """An index as text."""
        text = index_text(index, self.names.axes.__getitem__, self._fetched)
        self.names.called.update({"floor_division"} if "floor_division(" in text else set())
        return text

    def _fetched(self, node: Expr) -> str:
        text = self.value(node)
        return text if is_call(text) else f"({text})"

    def count(self, roots: Iterable[Expr]) -> None:
        """Notes how often each value of the coming statements is used."""
        self.names.uses.clear()
        seen: set[str] = set()
        for root in roots:
            self.names.uses[root.digest] += 1
            for node in root.walk():
                if node.digest not in seen:
                    seen.add(node.digest)
                    self.names.uses.update(child.digest for child in node.children)

    def _lookup(self, digest: str) -> str | None:
        scope: Scope | None = self
        while scope is not None:
            if digest in scope.known:
                return scope.known[digest]
            scope = scope.parent
        return None

    def _home(self, node: Expr) -> Scope:
        """The outermost scope that has all axes of the node."""
        scope = self
        while scope.parent is not None and node.axes <= scope.parent.axes:
            scope = scope.parent
        return scope

    def value(self, node: Expr) -> str:
        """The text of a value; statements that it needs are added where they belong."""
        if node.op == "constant":
            return literal(node.constant if node.constant is not None else 0, node.dtype)
        known = self._lookup(node.digest)
        if known is not None:
            return known
        home = self._home(node)
        if home is not self and not _is_trivial(node):
            return home._name(node, home._text(node))
        text = self._text(node)
        wanted = self.names.uses[node.digest] > 1 and not _is_trivial(node)
        return self._name(node, text) if wanted or len(text) > LONGEST else text

    def _name(self, node: Expr, text: str) -> str:
        name = self.names.fresh()
        self.add(f"const {CTYPES[node.dtype]} {name} = {text};")
        self.known[node.digest] = name
        return name

    def _text(self, node: Expr) -> str:
        match node.op:
            case "load" | "local":
                return self._read(node)
            case "index" if node.index is not None:
                return self.index(node.index)
            case "cast" if node.args[0].op == "index" and node.dtype is Dtype.FLOAT32:
                # 32-bit integers convert to float in vectors, 64-bit ones do not before AVX-512.
                return f"(float)(int32_t)({self.value(node.args[0])})"
            case "where":
                condition, *branches = node.args
                return operation(
                    node, [self.value(condition), *[self._eager(one) for one in branches]], self.names.source
                )
        text = operation(node, [self.value(arg) for arg in node.args], self.names.source)
        self.names.called.update({node.op, text.split("(")[0]})
        return text

    def _eager(self, node: Expr) -> str:
        """A branch of a choice, evaluated before it: a load inside would make the loop branch."""
        if node.op == "load" and not node.args and self._lookup(node.digest) is None:
            return self._name(node, self._text(node))
        return self.value(node)

    def _read(self, node: Expr) -> str:
        index = node.index
        if index is None:
            raise AssertionError("a read without a place")
        if node.op == "local":
            text = self.names.row(node.name, index, self.index)
        else:
            text = f"{self.names.pointers[node.name]}[{self.index(index)}]"
        if node.args:
            return f"({self.value(node.args[0])} ? {text} : {literal(0, node.dtype)})"
        return text


def _is_trivial(node: Expr) -> bool:
    return node.op in ("constant", "index") or (node.op == "local" and node.index is not None and not node.index.terms)
