"""Runs every task and keeps those that can tell a right kernel from a wrong one and a fast one from a slow one."""

from stages.filter.accept import Rejection, examine

__all__ = ["Rejection", "examine"]
