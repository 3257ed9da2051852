"""One small exported run, shared by the tests of this room."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from schemas.label import LabelledTrajectory
from schemas.parameters import ExportParameters, LabelParameters
from stages.export import ExportResult, export
from stages.label import label
from tests.factories import World, world


class Run(NamedTuple):
    """Records, labels and the dataset made of them."""

    world: World
    labelled: list[LabelledTrajectory]
    result: ExportResult

    def rows(self, view):
        """All rows of a view, both splits, with the split's name in `split`."""
        (tables,) = [tables for tables in self.result.views if tables.view.name == view]
        return [{"split": file.split, **row} for file in tables.files for row in file.table.to_pylist()]


def make_run(made: World, **parameters) -> Run:
    """Label and export a world."""
    labelled = label(made.trajectories, made.evaluations, made.tasks, LabelParameters())
    result = export(
        labelled,
        made.tasks,
        made.evaluations,
        made.candidates,
        ExportParameters(**parameters),
        baselines=made.baselines,
    )
    return Run(made, labelled, result)


@pytest.fixture(scope="session")
def run() -> Run:
    return make_run(world(6))
