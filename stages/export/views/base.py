"""What a view is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import pyarrow as pa

from stages.export.columns import Column, Episode, Row, schema


class View(NamedTuple):
    """One folder of the dataset."""

    name: str
    says: str
    """What a row is and which episodes are in it, for the card."""
    serves: str
    """Whom it is for."""
    columns: tuple[Column, ...]
    rows: Callable[[Episode], list[Row]]
    """The rows of one kept episode, a cell for each column."""
    indivisible: Literal["row", "episode"]
    """What is left out where a row is too long: transitions make sense only as a whole episode."""

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the view's files."""
        return schema(self.columns)
