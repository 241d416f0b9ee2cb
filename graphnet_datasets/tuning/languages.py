"""Languages of tasks: the worker module that parses, builds and measures the tasks of each.

The `kind` of a task's target names its language. `llvm` is TVM; packages register others under the
entry point group `graphnet_datasets.tuning_languages`. A task selects only among installed
languages, and its contents are parsed only in the worker.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping

from ..errors import TuningError
from ..plugins import entry_points
from .collecting import check_tvm
from .target import target_of
from .task import Task

LANGUAGE_GROUP = "graphnet_datasets.tuning_languages"


@dataclasses.dataclass(frozen=True)
class Language:
    """A language of tasks.

    `worker` is the module of isolated processes. Its `work` serves the jobs `space`, `anchor`,
    `reference` and `measure` (see `graphnet_datasets.tuning.worker`). `environment` returns the
    variables of a process that runs kernels with a number of threads. `check` raises an error if
    the language's libraries are not installed.
    """

    kind: str
    worker: str
    environment: Callable[[int], Mapping[str, str]]
    check: Callable[[], None]


TVM = Language(
    "llvm",
    "graphnet_datasets.tuning.worker",
    lambda threads: {"TVM_NUM_THREADS": str(threads), "OMP_NUM_THREADS": "1"},
    check_tvm,
)


def language_of(tasks: Iterable[Task]) -> Language:
    """Return the language of tasks, TVM without tasks.

    Targets that no language supports belong to TVM, which rejects them with a reason.

    Raises:
        TuningError: the tasks have several languages.

    >>> task = Task("a", "{}", '{"kind": "llvm"}', "matmul", "matmul", (), ())
    >>> language_of([task]) is TVM
    True
    """
    kinds = {target_of(task).kind for task in tasks}
    points = {point.name: point for point in entry_points(LANGUAGE_GROUP)}
    languages = {kind: points[kind].load() if kind in points else TVM for kind in sorted(kinds)}
    if len(set(languages.values())) > 1:
        raise TuningError(
            f"The tasks have targets of several languages: {', '.join(languages)}. Tune the tasks "
            "of each language separately, from datasets of their own."
        )
    return next(iter(languages.values()), TVM)
