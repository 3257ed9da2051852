"""Names for the dimensions of an operator, so that templates and sources read like a user's."""

from __future__ import annotations

from collections.abc import Iterator

from stages.mine.invocation import Address, Variable
from stages.mine.signature import Signature
from stages.mine.simplify import argument_name

Tie = tuple[Variable, ...]

TRAILING = {
    0: (),
    1: ("features",),
    2: ("length", "features"),
    3: ("channels", "height", "width"),
    4: ("channels", "depth", "height", "width"),
}
LATER = ("m", "p", "q", "r", "s", "t", "u", "v")


def names(signature: Signature) -> dict[Tie, str]:
    """A name for every tie that is not part of a `*`."""
    named: dict[Tie, str] = {}
    led = led_ties(signature)
    for tie in signature.ties:
        argument = next(
            (argument_name(signature.invocation, v) for v in tie if v.dim is None and len(v.address) == 2), None
        )
        if tie not in led and argument and argument not in named.values():
            named[tie] = argument
    later = (name for name in LATER if name not in named.values())
    for address, leaf in signature.invocation.tensors():
        depth = signature.starred.get(address, 0)
        for dim, usual in zip(range(depth, len(leaf.shape)), _usual(signature, address, len(leaf.shape)), strict=True):
            tie = tie_of(signature, Variable(address, dim))
            if tie not in named:
                named[tie] = usual if usual not in named.values() and address == _first(signature) else next(later)
    for tie in signature.ties:
        if tie not in led and tie not in named:
            named[tie] = next(later)
    return named


def led_ties(signature: Signature) -> set[Tie]:
    """The ties that a `*` stands for."""
    return {
        tie_of(signature, Variable(address, dim))
        for address, depth in signature.starred.items()
        for dim in range(depth)
    }


def tie_of(signature: Signature, variable: Variable) -> Tie:
    """The tie that a dimension stands in."""
    return next(tie for tie in signature.ties if variable in tie)


def _first(signature: Signature) -> Address:
    return signature.invocation.tensors()[0][0]


def _usual(signature: Signature, address: Address, rank: int) -> Iterator[str]:
    rest = rank - signature.starred.get(address, 0)
    if address not in signature.starred and rest in (2, 3, 4, 5):
        yield "batch"
        rest -= 1
        yield from ("channels", "length") if rest == 2 else TRAILING[rest]
    else:
        yield from TRAILING.get(rest, tuple(f"d{i}" for i in range(rest)))
