"""Says what a run amounts to: the funnel in numbers, and one page to read it and its trajectories on."""

from stages.report.metrics import Metrics, funnel
from stages.report.render import page

__all__ = ["Metrics", "funnel", "page"]
