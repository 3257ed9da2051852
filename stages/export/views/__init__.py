"""The views: what an episode becomes for each kind of trainer. One file, one pure function and one schema each."""

from stages.export.views.base import View
from stages.export.views.prompt_completion import PROMPT_COMPLETION
from stages.export.views.sft_plain import SFT_PLAIN
from stages.export.views.transitions_text import TRANSITIONS_TEXT

__all__ = ["VIEWS", "View"]

VIEWS: tuple[View, ...] = (SFT_PLAIN, PROMPT_COMPLETION, TRANSITIONS_TEXT)
"""All views; the first that has rows is the default of the dataset."""
