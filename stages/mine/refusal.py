"""Why something is no operator of ours."""

from __future__ import annotations


class Refused(Exception):
    """Raised by a step that a call does not pass; `reason` is a short rule name."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


EXCLUDED = {
    "torch.masked.": "a prototype: arrays with masks, made of other operators",
    "torch.nn.functional.ctc_loss": "alignment over lengths held in lists",
    "torch.nn.CTCLoss": "alignment over lengths held in lists",
    "torch.nn.Transformer": "a stack of layers, not an operator",
}
"""Beginnings of names that trial cannot rule out, and why."""


def check_name(name: str) -> None:
    """Raises `Refused` for a name that is excluded or says that it works in place."""
    for beginning, why in EXCLUDED.items():
        if name.startswith(beginning):
            raise Refused("excluded", why)
    if name.endswith("_"):
        raise Refused("in_place", "works in place")
