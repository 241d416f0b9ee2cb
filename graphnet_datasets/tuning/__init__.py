"""Autotuning of the operators of real graphs: one interface, every measurement a row."""

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
