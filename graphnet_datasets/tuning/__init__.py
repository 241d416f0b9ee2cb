"""Autotuning of the operators of real graphs: one interface, every measurement a row.

Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_names import attributes_on_first_use

if TYPE_CHECKING:
    from .candidate import Candidate, Origin, ProgramGraph, trace_hash
    from .interfaces import (
        CostModel,
        Dispatcher,
        Measurer,
        Slot,
        Space,
        State,
        TaskAllocator,
        Tuner,
    )
    from .knobs import trace_knobs
    from .loop import Budget, Progress, TuningResult, tune
    from .measurement import Measurement, TrialStatus, normalised_throughput
    from .registry import (
        list_allocators,
        list_tuners,
        make_allocator,
        make_tuner,
        register_allocator,
        register_tuner,
    )
    from .replay import Pool, PoolSpace, ReplayMeasurer
    from .task import Task, TaskSource, task_key

__all__ = [
    "Budget",
    "Candidate",
    "CostModel",
    "Dispatcher",
    "Measurement",
    "Measurer",
    "Origin",
    "Pool",
    "PoolSpace",
    "ProgramGraph",
    "Progress",
    "ReplayMeasurer",
    "Slot",
    "Space",
    "State",
    "Task",
    "TaskAllocator",
    "TaskSource",
    "TrialStatus",
    "Tuner",
    "TuningResult",
    "list_allocators",
    "list_tuners",
    "make_allocator",
    "make_tuner",
    "normalised_throughput",
    "register_allocator",
    "register_tuner",
    "task_key",
    "trace_hash",
    "trace_knobs",
    "tune",
]

__getattr__ = attributes_on_first_use(
    __name__,
    {
        "Budget": "loop",
        "Candidate": "candidate",
        "CostModel": "interfaces",
        "Dispatcher": "interfaces",
        "Measurement": "measurement",
        "Measurer": "interfaces",
        "Origin": "candidate",
        "Pool": "replay",
        "PoolSpace": "replay",
        "ProgramGraph": "candidate",
        "Progress": "loop",
        "ReplayMeasurer": "replay",
        "Slot": "interfaces",
        "Space": "interfaces",
        "State": "interfaces",
        "Task": "task",
        "TaskAllocator": "interfaces",
        "TaskSource": "task",
        "TrialStatus": "measurement",
        "Tuner": "interfaces",
        "TuningResult": "loop",
        "list_allocators": "registry",
        "list_tuners": "registry",
        "make_allocator": "registry",
        "make_tuner": "registry",
        "normalised_throughput": "measurement",
        "register_allocator": "registry",
        "register_tuner": "registry",
        "task_key": "task",
        "trace_hash": "candidate",
        "trace_knobs": "knobs",
        "tune": "loop",
    },
)
