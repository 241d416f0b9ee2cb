"""The template space: few schedules per task, all of which can be measured."""

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
    """Schedules of the templates in `gemm` and `conv`, for these families only.

    Features and knobs are those of `TvmSpace`. Candidates have no neighbours.
    """

    def enumerate(self, task: Task) -> list[Candidate]:
        """Return the distinct candidates of a task, at most 40; empty without a template.

        Raises:
            TuningError: the task cannot be parsed.
        """
        self.add(task)
        template = _TEMPLATES.get(task.family)
        if template is None:
            return []
        workload = load_workload(task.workload_json, trust_remote_code=self._trust_remote_code)
        tvm: Any = importlib.import_module("tvm")
        traces: dict[str, None] = {}
        block, spatial, reductions = anchor_block(tvm, workload)
        if block is None or len(spatial) < 2 or not reductions:
            return []
        anchor = template.anchor_of(block, len(spatial))
        for tile in template.candidates(spatial, reductions):
            schedule = tvm.s_tir.Schedule(workload, debug_mask=0, error_render_level="none")
            try:
                schedule_tile(schedule, anchor, tile, target_of(task).threads)
            except (TuningError, RuntimeError, ValueError, TypeError):  # tile does not apply
                continue
            traces.setdefault(trace_text(schedule.trace))
        return [Candidate(task.task_id, text, Origin.TEMPLATE) for text in traces]

    def sample(self, task: Task, n: int, seed: int) -> list[Candidate]:
        """Return up to `n` distinct candidates, drawn at random."""
        everything = self.enumerate(task)
        order = np.random.default_rng(seed).permutation(len(everything))[:n]
        return [everything[index] for index in order]

    def mutate(self, candidate: Candidate, seed: int) -> Candidate | None:
        """Return None, since template candidates have no neighbours."""
        del candidate, seed

    def crossover(self, first: Candidate, second: Candidate, seed: int) -> Candidate | None:
        """Return None, since template candidates have no crossover."""
        del first, second, seed


def anchor_block(tvm: Any, workload: Any) -> tuple[str | None, list[int], list[int]]:
    """Return the name of the single reduction block, and its spatial and reduction extents.

    Returns None and empty lists unless there is exactly one such block.
    """
    schedule = tvm.s_tir.Schedule(workload, debug_mask=0, error_render_level="none")
    matches: list[tuple[str, list[int], list[int]]] = []
    for block in schedule.get_child_blocks(schedule.get_sblock("root")):
        loops = [int(schedule.get(loop).extent) for loop in schedule.get_loops(block)]
        statement = schedule.get(block)
        kinds = [int(variable.iter_type) for variable in statement.iter_vars]
        if 2 in kinds and len(kinds) == len(loops):
            spatial = [size for size, kind in zip(loops, kinds, strict=True) if kind == 0]
            reductions = [size for size, kind in zip(loops, kinds, strict=True) if kind == 2]
            matches.append((str(statement.name_hint), spatial, reductions))
    return matches[0] if len(matches) == 1 else (None, [], [])
