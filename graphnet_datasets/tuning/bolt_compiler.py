"""The `tvm-bolt` compiler: templates of products and convolutions, profiled at compile time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ..compilers.options import Option
from ..compilers.tvm import Tvm
from .compiler import Chosen, ScheduledTvm, best_of
from .extract import Extraction
from .interfaces import Measurer
from .measure import LiveMeasurer, TimingPlan
from .measurement import Measurement
from .task import Task
from .templates.space import TemplateSpace
from .tuners.bolt import BoltTuner

_BATCH = 4


class TvmBolt(ScheduledTvm):
    """Use the fastest template candidate for each product and convolution of the graph.

    Each compilation profiles each shape once: its candidates, at most 40, are built, checked and
    timed in isolated processes until `tune_s` has passed, tasks with the most flops first.
    """

    name = "tvm-bolt"
    option_table: ClassVar[Mapping[str, Option]] = {
        **Tvm.option_table,
        "tune_s": Option(240.0, "Seconds for profiling all shapes."),
        "min_flops": Option(1_000_000, "Tasks with fewer flops keep the schedule of `tvm`."),
        "candidates": Option(40, "Maximum number of candidates per shape."),
    }

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        self._tuning_s = 0.0

    def schedules(self, extraction: Extraction) -> Mapping[str, Sequence[Chosen]]:
        """Return the correct candidates of each shape that could be profiled in time."""
        started = time.monotonic()
        space = TemplateSpace(trust_remote_code=True)  # its tasks were extracted locally
        tasks = [
            task
            for task in sorted(extraction.tasks, key=lambda item: -item.flops * item.weight)
            if task.flops >= self.options["min_flops"] and space.enumerate(task)
        ]
        rows: list[Measurement] = []
        if tasks:
            plan = TimingPlan(repeat=3, min_repeat_ms=5)
            with LiveMeasurer(tasks, plan=plan, trust_remote_code=True) as measurer:
                for number, task in enumerate(tasks):
                    left = self.options["tune_s"] - (time.monotonic() - started)
                    if left <= 0:
                        self.warnings.append(
                            f"untuned: no time left for {len(tasks) - number} of "
                            f"{len(tasks)} shapes"
                        )
                        break
                    share = left / (len(tasks) - number)
                    rows += self._profile(task, BoltTuner(space), measurer, share)
        self._tuning_s = time.monotonic() - started
        return best_of(rows)

    def tuning_s(self) -> float:
        """Return the seconds of profiling, which are part of the compile time."""
        return self._tuning_s

    def nothing(self, extraction: Extraction, target_json: str) -> str:
        """Return a message that no template applies to the graph."""
        del target_json
        return (
            f"None of the graph's {len(extraction.tasks)} tasks is a product or convolution of at "
            f"least {self.options['min_flops']:,} flops with a correct candidate. Lower "
            "`min_flops`, or use `tvm`."
        )

    def _profile(
        self, task: Task, tuner: BoltTuner, measurer: Measurer, seconds: float
    ) -> list[Measurement]:
        end = time.monotonic() + seconds
        rows: list[Measurement] = []
        while len(rows) < self.options["candidates"] and (not rows or time.monotonic() < end):
            batch = tuner.propose(task, min(_BATCH, self.options["candidates"] - len(rows)))
            if not batch:
                break
            rows += measurer.measure(batch)
        return rows
