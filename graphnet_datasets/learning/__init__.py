"""Learning tasks on graphs and measurements: data, fixed folds, metrics and baselines.

>>> from graphnet_datasets.learning import TASKS
>>> sorted(TASKS)
['compilable', 'latency', 'schedule_rank', 'speedup_sign']
"""

from .baselines import BASELINES, cross_validate
from .metrics import latency_error, outcome_accuracy, schedule_ranking
from .tasks import TASKS, LearningTask, load_learning_task

__all__ = [
    "BASELINES",
    "TASKS",
    "LearningTask",
    "cross_validate",
    "latency_error",
    "load_learning_task",
    "outcome_accuracy",
    "schedule_ranking",
]
