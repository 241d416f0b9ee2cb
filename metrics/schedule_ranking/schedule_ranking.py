"""Rankings of schedules, by `graphnet_datasets.learning`, as a metric of `evaluate`."""

from typing import Any

import datasets
import evaluate
from graphnet_datasets.metrics import description

from graphnet_datasets.learning import schedule_ranking

_DESCRIPTION = """
How well scores rank the schedules of tuning tasks: the rank correlation within tasks, and the speed
of the best among the schedules with the highest scores.
"""

_INPUTS = """
Compute how well scores rank the schedules of each task.

Args:
    predictions: a score per schedule; higher scores promise less time.
    references: dicts with `time_ms` and `task_id` of each schedule.

Returns:
    A dict with `rank_correlation` (Spearman), `best_of_1` and `best_of_5` (speed relative to the
    fastest schedule), all means over tasks, and `num_tasks`.

Examples:

    >>> import evaluate
    >>> from graphnet_datasets import metric_path
    >>> metric = evaluate.load(metric_path("schedule_ranking"))
    >>> times = [1.0, 2.0, 4.0]
    >>> references = [{"time_ms": time_ms, "task_id": "matmul"} for time_ms in times]
    >>> metric.compute(predictions=[3.0, 2.0, 1.0], references=references)
    {'rank_correlation': 1.0, 'best_of_1': 1.0, 'best_of_5': 1.0, 'num_tasks': 1}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _INPUTS)
class ScheduleRanking(evaluate.Metric):
    """Rankings of schedules."""

    def _info(self) -> evaluate.MetricInfo:
        features = datasets.Features(
            {
                "predictions": datasets.Value("float64"),
                "references": {
                    "time_ms": datasets.Value("float64"),
                    "task_id": datasets.Value("string"),
                },
            }
        )
        return description.make_info(_DESCRIPTION, _INPUTS, features)

    # `evaluate` passes the inputs by name, and refuses `**kwargs`.
    def _compute(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, predictions: list[float], references: list[dict[str, Any]]
    ) -> dict[str, float]:
        return schedule_ranking(
            predictions,
            [schedule["time_ms"] for schedule in references],
            [schedule["task_id"] for schedule in references],
        )
