"""Turns verdicts into rewards, returns and advantages, and says which episodes may teach. Pure; needs no device."""

from stages.label.rows import label

__all__ = ["label"]
