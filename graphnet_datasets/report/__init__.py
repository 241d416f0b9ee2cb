"""Pictures and pages of scores."""

from .page import write_page
from .plots import plot_runs, plot_scores, plot_speedups

__all__ = ["plot_runs", "plot_scores", "plot_speedups", "write_page"]
