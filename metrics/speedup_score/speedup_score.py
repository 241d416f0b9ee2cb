"""S(t) as an `evaluate` metric; the mathematics is in `graphnet_datasets.scores`."""

from typing import Any

import evaluate
from graphnet_datasets.metrics import description

from graphnet_datasets.scores import from_metric_inputs, speedup_score

_DESCRIPTION = """
The speedup score S(t) of a tensor compiler: the geometric mean over samples of the speedup over
eager, where p penalises slow samples and a sample that fails, or is wrong at tolerance t,
counts as b. From the GraphNet technical report, section 3.2 and appendices A and B.
"""

_SUMMARY = """
Compute S(t) at t = -10 ... 4.
"""

_RETURNS = """
Returns:
    A dict with `p`, `b`, `variant`, `samples`, `families`, `warnings`, `conditions`,
    `excluded`, and by t ("-10" ... "4")
    `S`, `S_low` and `S_high` (95 % interval), `S_family`, `alpha`, `beta`, `lambda`, `eta`, the
    counts `num_correct`, `num_accuracy`, `num_runtime`, `num_compile` ... and `vacuous_share`.

Examples:

    >>> import evaluate
    >>> from graphnet_datasets import metric_path
    >>> metric = evaluate.load(metric_path("speedup_score"))
    >>> predictions = [
    ...     {"latency_ms": 1.0, "status": "ok", "error_code": None, "min_t": -5.0, "null_t": 0.0,
    ...      "family": "resnet"},
    ...     {"latency_ms": None, "status": "compile_failed", "error_code": 3, "min_t": None,
    ...      "null_t": None, "family": "bert"},
    ... ]
    >>> references = [{"latency_ms": 2.0}, {"latency_ms": 3.0}]
    >>> scores = metric.compute(predictions=predictions, references=references)
    >>> round(scores["S"]["0"], 6)
    0.447214
    >>> round(scores["S"]["-6"], 6), scores["S"]["1"]
    (0.1, None)
    >>> scores["num_compile"]["0"], scores["p"], scores["b"], scores["variant"]
    (1, 0.1, 0.1, 'report')
"""


_INPUTS = _SUMMARY + description.ARGUMENTS + _RETURNS


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _INPUTS)
class SpeedupScore(description.ScoreMetric):
    """S(t), the speedup score."""

    def _info(self) -> evaluate.MetricInfo:
        return description.make_info(_DESCRIPTION, _INPUTS)

    # `evaluate` passes the inputs and options by name, and refuses `**kwargs`.
    def _compute(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        predictions: list[dict[str, Any]],
        references: list[dict[str, Any]],
        p: float | None = None,
        b: float = 0.1,
        variant: str = "report",
    ) -> dict[str, Any]:
        runs = from_metric_inputs(predictions, references)
        return speedup_score(runs, p, b, variant).to_dict()
