"""What might be an operator: everything that torch's own test data knows how to call, and every public name beside it.

Names without samples are listed too: they may turn out to be aliases, and what was left out is on record.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple, cast

import torch

from schemas.operator import Form
from stages.mine.execution import resolve
from stages.mine.invocation import Invocation
from stages.mine.samples import Samples, bare_modules, functions, modules

NAMESPACES = ("torch.nn.functional", "torch", "torch.special", "torch.linalg")


class Candidate(NamedTuple):
    """A public name and calls of it that torch's own tests make."""

    name: str
    form: Form
    samples: Samples
    """Empty where there are none; samples that no source text stands for are skipped."""
    others: tuple[str, ...]
    """Names without samples of their own that may be aliases."""


def candidates() -> list[Candidate]:
    """All names worth a look, sorted; takes some seconds, most of them torch's test data being imported."""
    sources: dict[str, list[Samples]] = {}
    forms: dict[str, Form] = {}
    aliases: dict[str, str] = {}
    for entry in itertools.chain(functions(), modules()):
        sources.setdefault(entry.name, []).append(entry.samples)
        forms[entry.name] = entry.form
        aliases |= dict.fromkeys(entry.aliases, entry.name)
    for entry in bare_modules():
        sources.setdefault(entry.name, [entry.samples])
        forms.setdefault(entry.name, entry.form)
    for name in _dispatching():
        homonyms = (f"{namespace}.{name.rpartition('.')[2]}" for namespace in NAMESPACES)
        known = next((other for other in homonyms if other in sources and other != name), None)
        aliases |= {} if known is None or name in aliases else {name: known}
        forms.setdefault(name, Form.FUNCTION)
    others: dict[str, list[str]] = {}
    for alias, name in aliases.items():
        if alias not in sources:
            others.setdefault(name, []).append(alias)
    own = sorted(name for name in forms if name in sources or name not in aliases)
    return [
        Candidate(
            name, forms[name], functools.partial(_chain, sources.get(name, [])), tuple(sorted(others.get(name, [])))
        )
        for name in own
    ]


def _chain(sources: list[Samples]) -> Iterator[Invocation]:
    for source in sources:
        yield from source()


def _dispatching() -> Iterator[str]:
    """Public functions that dispatch on tensors, whether or not the test data knows them."""
    dispatching = torch.overrides.get_testing_overrides()
    for namespace in NAMESPACES:
        module = torch if namespace == "torch" else cast(ModuleType, resolve(namespace))
        for name, value in vars(module).items():
            if not name.startswith("_") and callable(value) and value in dispatching:
                yield f"{namespace}.{name}"
