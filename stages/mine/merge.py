"""Names of one computation become one operator with aliases."""

from __future__ import annotations

from collections.abc import Iterable

from schemas.operator import Form, Operator


def merge(operators: Iterable[Operator]) -> list[Operator]:
    """One operator for each graph hash, under its most usual name, the others as aliases; sorted by name and id."""
    groups: dict[str, list[Operator]] = {}
    for operator in operators:
        groups.setdefault(operator.graph_hash, []).append(operator)
    merged = []
    for group in groups.values():
        best, *_ = ranked = sorted(group, key=_rank)
        aliases = sorted({name for operator in ranked for name in (operator.name, *operator.aliases)} - {best.name})
        merged.append(best.model_copy(update={"aliases": tuple(aliases)}))
    return sorted(merged, key=lambda operator: (operator.name, operator.operator_id))


def _rank(operator: Operator) -> tuple[int, int, str, str]:
    """Users write parametrised layers as modules and everything else as functions, the documented ones first."""
    namespace = operator.name.rpartition(".")[0]
    has_parameters = operator.form is Form.MODULE and operator.constructor is not None and "{" in operator.constructor
    order = ("torch.nn.functional", "torch", "torch.linalg", "torch.special", "torch.Tensor", "torch.nn")
    place = -1 if has_parameters else order.index(namespace) if namespace in order else len(order)
    return place, len(operator.arguments), operator.name, operator.operator_id
