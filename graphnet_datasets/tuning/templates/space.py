"""The space of templates: for each task few schedules, all of which can be measured."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ...errors import TuningError
from ..candidate import Candidate, Origin
from ..extract import load_workload, trace_text
from ..space import TvmSpace
from ..target import target_of
from ..task import Task
from . import conv, gemm
from .tiles import schedule_tile

_TEMPLATES = {family: module for module in (gemm, conv) for family in module.FAMILIES}


class TemplateSpace(TvmSpace):
    """Schedules of the templates in `gemm` and `conv`; other families have none.

    Features and knobs are those of `TvmSpace`; there are no neighbours.
    """

    def enumerate(self, task: Task) -> list[Candidate]:
        """Return the candidates of a task, without doubles, at most 40; [] without a template.

        Raises:
            TuningError: the task cannot be read.
        """
        self.add(task)
        template = _TEMPLATES.get(task.family)
        if template is None:
            return []
        workload = load_workload(task.workload_json, trust_remote_code=self._trust_remote_code)
        tvm: Any = importlib.import_module("tvm")
        found: dict[str, None] = {}
        block, spatial, reductions = anchor_block(tvm, workload)
        if block is None or len(spatial) < 2 or not reductions:
            return []
        anchor = template.anchor_of(block, len(spatial))
        for tile in template.candidates(spatial, reductions):
            schedule = tvm.s_tir.Schedule(workload, debug_mask=0, error_render_level="none")
            try:
                schedule_tile(schedule, anchor, tile, target_of(task).threads)
            except (TuningError, RuntimeError, ValueError, TypeError):  # a form that it is not for
                continue
            found.setdefault(trace_text(schedule.trace))
        return [Candidate(task.task_id, text, Origin.TEMPLATE) for text in found]

    def sample(self, task: Task, n: int, seed: int) -> list[Candidate]:
        """Return up to `n` of all candidates, drawn without doubles."""
        everything = self.enumerate(task)
        order = np.random.default_rng(seed).permutation(len(everything))[:n]
        return [everything[index] for index in order]

    def mutate(self, candidate: Candidate, seed: int) -> Candidate | None:
        """Return None: a template has no neighbours."""
        del candidate, seed

    def crossover(self, first: Candidate, second: Candidate, seed: int) -> Candidate | None:
        """Return None: a template has no children."""
        del first, second, seed


def anchor_block(tvm: Any, workload: Any) -> tuple[str | None, list[int], list[int]]:
    """Return the name of the block with most loops that reduces, and its loops' lengths.

    None where there is none, or several: a template is for one.
    """
    schedule = tvm.s_tir.Schedule(workload, debug_mask=0, error_render_level="none")
    found: list[tuple[str, list[int], list[int]]] = []
    for block in schedule.get_child_blocks(schedule.get_sblock("root")):
        loops = [int(schedule.get(loop).extent) for loop in schedule.get_loops(block)]
        statement = schedule.get(block)
        kinds = [int(each.iter_type) for each in statement.iter_vars]
        if 2 in kinds and len(kinds) == len(loops):
            spatial = [size for size, kind in zip(loops, kinds, strict=True) if kind == 0]
            reductions = [size for size, kind in zip(loops, kinds, strict=True) if kind == 2]
            found.append((str(statement.name_hint), spatial, reductions))
    return found[0] if len(found) == 1 else (None, [], [])
