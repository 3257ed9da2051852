"""From candidates to operator records: try, learn, trace, and merge what computes the same under several names."""

from __future__ import annotations

import contextlib
import hashlib
import random
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import torch

from schemas.operator import Operator, RefusedOperator
from schemas.parameters import MineParameters
from stages.mine.candidates import Candidate, candidates
from stages.mine.conduct import agrees
from stages.mine.draft import draft, learn
from stages.mine.invocation import Invocation
from stages.mine.merge import merge
from stages.mine.refusal import Refused, check_name
from stages.mine.simplify import plain_form, plainness

LIBRARY = "torch"
TRIES = 8
"""Distinct calls of one name that are looked into."""
VARIANTS = 3
"""Operators kept for one name: axes and modes make different loop nests."""
UNSAMPLED = Refused("no_sample", "torch's test data does not say how to call it")


class _Finding(NamedTuple):
    """What one candidate came to."""

    operators: list[Operator]
    refusals: list[RefusedOperator]


def count(parameters: MineParameters) -> int:
    """How many names `mine` will look at."""
    del parameters  # there is one library
    return len(candidates())


def mine(parameters: MineParameters) -> Iterator[Operator | RefusedOperator]:
    """Every operator of the installed torch that runs on the CPU in float32, and what was left out.

    Refusals come as they happen, operators at the end, sorted by name; names that compute the same are one operator
    with aliases. With `parameters.limit` it stops as soon as it has so many.
    """
    found: list[Operator] = []
    for candidate in _in_order(candidates(), parameters):
        if parameters.limit is not None and len(merge(found)) >= parameters.limit:
            break
        with _quiet():
            finding = _look_into(candidate)
        found += finding.operators
        yield from finding.refusals
    yield from merge(found)[: parameters.limit]


def _in_order(known: list[Candidate], parameters: MineParameters) -> list[Candidate]:
    """All candidates; scattered where only some are wanted, so that they are of many kinds."""
    if parameters.limit is None:
        return known
    return sorted(known, key=lambda candidate: hashlib.sha256(candidate.name.encode()).digest())


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Trials leave no trace, neither warnings nor a changed random state, and do not depend on what ran before."""
    state = random.getstate()
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        random.seed(0)
        torch.manual_seed(0)
        try:
            yield
        finally:
            random.setstate(state)


def _look_into(candidate: Candidate) -> _Finding:
    """The operators that a name stands for, or why there are none; and which other names are aliases of it."""
    found: dict[str, Operator] = {}
    refused: list[Refused] = []
    templates: set[str] = set()
    try:
        calls = _calls(candidate)
    except Refused as reason:
        calls, refused = [], [reason]
    for call in calls:
        try:
            typed = learn(call)
            if typed.key in templates:
                continue
            templates.add(typed.key)
            operator = draft(candidate.name, call, typed)
        except Refused as reason:
            refused.append(reason)
            continue
        aliases = tuple(other for other in candidate.others if agrees(call, other))
        found.setdefault(operator.graph_hash, operator.model_copy(update={"aliases": aliases}))
        if len(found) == VARIANTS:
            break
    taken = {alias for operator in found.values() for alias in operator.aliases}
    lost = [] if found else [_refusal(candidate.name, refused[0])]
    lost += [_refusal(other, UNSAMPLED) for other in candidate.others if other not in taken]
    return _Finding(list(found.values()), lost)


def _refusal(name: str, reason: Refused) -> RefusedOperator:
    return RefusedOperator(name=name, library=LIBRARY, reason=reason.reason, detail=reason.detail)


def _calls(candidate: Candidate) -> list[Invocation]:
    """The distinct plain forms of a candidate's samples, plainest first."""
    check_name(candidate.name)
    forms: dict[str, Invocation] = {}
    refused: list[Refused] = []
    for sample in candidate.samples():
        try:
            form = plain_form(sample)
        except Refused as reason:
            refused.append(reason)
            continue
        forms.setdefault(repr(form), form)
    if not forms:
        raise refused[0] if refused else UNSAMPLED
    return sorted(forms.values(), key=plainness)[:TRIES]
