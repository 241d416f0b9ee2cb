"""Pictures, pages and sites of scores."""

from .coverage import plot_coverage
from .distributions import plot_distributions
from .graph_picture import draw_graph, write_graph
from .page import write_page
from .plots import plot_runs, plot_scores, plot_speedups
from .site import write_site

__all__ = [
    "draw_graph",
    "plot_coverage",
    "plot_distributions",
    "plot_runs",
    "plot_scores",
    "plot_speedups",
    "write_graph",
    "write_page",
    "write_site",
]
