"""Pictures, pages and sites of scores."""

from .coverage import plot_coverage
from .distributions import plot_distributions
from .graph_picture import draw_graph, write_graph
from .page import write_page
from .plots import plot_runs, plot_scores
from .site import write_site
from .speedup_plots import plot_latencies, plot_samples, plot_speedups

__all__ = [
    "draw_graph",
    "plot_coverage",
    "plot_distributions",
    "plot_latencies",
    "plot_runs",
    "plot_samples",
    "plot_scores",
    "plot_speedups",
    "write_graph",
    "write_page",
    "write_site",
]
