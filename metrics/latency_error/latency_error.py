"""Errors of predicted latencies, by `graphnet_datasets.learning`, as a metric of `evaluate`."""

import datasets
import evaluate
from graphnet_datasets.metrics import description

from graphnet_datasets.learning import latency_error

_DESCRIPTION = """
The errors of predicted latencies of graphs: the mean absolute percentage error, the median factor
between prediction and measurement, and the rank correlation.
"""

_INPUTS = """
Compute the errors of predicted latencies.

Args:
    predictions: predicted latencies in milliseconds.
    references: measured latencies in milliseconds.

Returns:
    A dict with `mape` (0.35 is 35 %), `median_factor` (at least 1) and Spearman's
    `rank_correlation`.

Examples:

    >>> import evaluate
    >>> from graphnet_datasets import metric_path
    >>> metric = evaluate.load(metric_path("latency_error"))
    >>> metric.compute(predictions=[1.0, 4.0, 8.0], references=[2.0, 4.0, 8.0])["median_factor"]
    1.0
    >>> round(metric.compute(predictions=[1.0, 4.0], references=[2.0, 4.0])["mape"], 2)
    0.25
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _INPUTS)
class LatencyError(evaluate.Metric):
    """Errors of predicted latencies."""

    def _info(self) -> evaluate.MetricInfo:
        features = datasets.Features(
            {"predictions": datasets.Value("float64"), "references": datasets.Value("float64")}
        )
        return description.make_info(_DESCRIPTION, _INPUTS, features)

    # `evaluate` passes the inputs by name, and refuses `**kwargs`.
    def _compute(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, predictions: list[float], references: list[float]
    ) -> dict[str, float]:
        return latency_error(predictions, references)
