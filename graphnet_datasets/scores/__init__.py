"""S(t) and ES(t) of run records, and the functions behind them."""

from .comparing import compare
from .comparison import Comparison
from .contributions import log_contributions
from .costs import costs
from .expected import (
    BugOutcome,
    Expectation,
    compare_with_expected,
    describe_expectations,
    verdict_of,
)
from .metric_inputs import MetricInputs, from_metric_inputs, metric_path, to_metric_inputs
from .result import Scores
from .run_sets import as_table, split_arms, split_by
from .samples import by_sample
from .scoring import error_aware_speedup_score, score_of_components, speedup_score
from .summary import Summary, relative_speedup, summarise, summarise_arms
from .variants import TOLERANCES, VARIANTS, Variant
from .verdicts import Outcome, Verdict

__all__ = [
    "TOLERANCES",
    "VARIANTS",
    "BugOutcome",
    "Comparison",
    "Expectation",
    "MetricInputs",
    "Outcome",
    "Scores",
    "Summary",
    "Variant",
    "Verdict",
    "as_table",
    "by_sample",
    "compare",
    "compare_with_expected",
    "costs",
    "describe_expectations",
    "error_aware_speedup_score",
    "from_metric_inputs",
    "log_contributions",
    "metric_path",
    "relative_speedup",
    "score_of_components",
    "speedup_score",
    "split_arms",
    "split_by",
    "summarise",
    "summarise_arms",
    "to_metric_inputs",
    "verdict_of",
]
