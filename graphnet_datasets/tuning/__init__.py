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
from .measurement import Measurement, TrialStatus, normalised_throughput
from .task import Task, TaskSource, task_key

__all__ = [
    "Candidate",
    "CostModel",
    "Dispatcher",
    "Measurement",
    "Measurer",
    "Origin",
    "ProgramGraph",
    "Slot",
    "Space",
    "State",
    "Task",
    "TaskAllocator",
    "TaskSource",
    "TrialStatus",
    "Tuner",
    "normalised_throughput",
    "task_key",
    "trace_hash",
]
