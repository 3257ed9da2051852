"""Turns labelled trajectories into the tables that trainers read, split without leaks, with a card that says so."""

from stages.export.assemble import ExportResult, export
from stages.export.tables import TableFile, ViewTables

__all__ = ["ExportResult", "TableFile", "ViewTables", "export"]
