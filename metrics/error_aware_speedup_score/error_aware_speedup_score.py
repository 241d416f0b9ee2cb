"""ES(t) as an `evaluate` metric; the mathematics is in `graphnet_datasets.scores`."""

from typing import Any

import evaluate
from graphnet_datasets.metrics import description

from graphnet_datasets.scores import error_aware_speedup_score, from_metric_inputs

_DESCRIPTION = """
The error-aware speedup score ES(t) of a tensor compiler: equal to S(t) for t <= 0. For t > 0
failures are forgiven code by code (1 accuracy, 2 runtime, 3 compilation), and a forgiven failure
counts as 1 instead of b. From the GraphNet technical report, section 3.2 and appendices A to C.
"""

_SUMMARY = """
Compute ES(t) at t = -10 ... 4.
"""

_RETURNS = """
Returns:
    A dict with `p`, `b`, `variant`, `samples`, `families`, `warnings`, `conditions`,
    `excluded`, and by t ("-10" ... "4")
    `ES`, `ES_low` and `ES_high` (95 % interval), `ES_family`, `alpha`, `beta`, `lambda`, `eta`,
    `gamma`, `pi_1` ..., the counts `num_correct`, `num_accuracy`, `num_runtime`, `num_compile` ...
    and `vacuous_share`.

Examples:

    >>> import evaluate
    >>> from graphnet_datasets import metric_path
    >>> metric = evaluate.load(metric_path("error_aware_speedup_score"))
    >>> predictions = [
    ...     {"latency_ms": 1.0, "status": "ok", "error_code": None, "min_t": -5.0, "null_t": 0.0,
    ...      "family": "resnet"},
    ...     {"latency_ms": None, "status": "compile_failed", "error_code": 3, "min_t": None,
    ...      "null_t": None, "family": "bert"},
    ... ]
    >>> references = [{"latency_ms": 2.0}, {"latency_ms": 3.0}]
    >>> scores = metric.compute(predictions=predictions, references=references)
    >>> [round(scores["ES"][t], 6) for t in ("0", "2", "3")]
    [0.447214, 0.447214, 1.414214]
    >>> scores["pi_3"]["2"], scores["gamma"]["2"], scores["gamma"]["3"]
    (1.0, 0.1, 1.0)
"""


_INPUTS = _SUMMARY + description.ARGUMENTS + _RETURNS


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _INPUTS)
class ErrorAwareSpeedupScore(description.ScoreMetric):
    """ES(t), the error-aware speedup score."""

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
        return error_aware_speedup_score(runs, p, b, variant).to_dict()
