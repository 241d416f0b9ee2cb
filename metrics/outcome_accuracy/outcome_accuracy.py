"""Accuracy of predicted outcomes, by `graphnet_datasets.learning`, as a metric of `evaluate`."""

import datasets
import evaluate
from graphnet_datasets.metrics import description

from graphnet_datasets.learning import outcome_accuracy

_DESCRIPTION = """
The accuracy of predicted probabilities of an outcome: whether a compiler compiles a graph, or is
faster than eager.
"""

_INPUTS = """
Compute the accuracy of predicted probabilities.

Args:
    predictions: probabilities that the outcome is true; above 0.5 predicts true.
    references: whether it is.

Returns:
    A dict with `accuracy`, `balanced_accuracy`, `majority_accuracy` (of always predicting the more
    frequent outcome) and `auc`.

Examples:

    >>> import evaluate
    >>> from graphnet_datasets import metric_path
    >>> metric = evaluate.load(metric_path("outcome_accuracy"))
    >>> metric.compute(predictions=[0.9, 0.2, 0.6, 0.7], references=[True, False, False, True])
    {'accuracy': 0.75, 'balanced_accuracy': 0.75, 'majority_accuracy': 0.5, 'auc': 1.0}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _INPUTS)
class OutcomeAccuracy(evaluate.Metric):
    """Accuracy of predicted outcomes."""

    def _info(self) -> evaluate.MetricInfo:
        features = datasets.Features(
            {"predictions": datasets.Value("float64"), "references": datasets.Value("bool")}
        )
        return description.make_info(_DESCRIPTION, _INPUTS, features)

    # `evaluate` passes the inputs by name, and refuses `**kwargs`.
    def _compute(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, predictions: list[float], references: list[bool]
    ) -> dict[str, float]:
        return outcome_accuracy(predictions, references)
