"""Domains, dependences and schedules of instances as integer sets, with isl."""

from .dependences import Dependences, dependences
from .domains import Domains, domains
from .legality import check_schedule
from .relations import Relations, relations
from .schedule import Loop, Nested, Schedule, StatementSchedule
from .scheduling import as_loops, parallel_loops

__all__ = [
    "Dependences",
    "Domains",
    "Loop",
    "Nested",
    "Relations",
    "Schedule",
    "StatementSchedule",
    "as_loops",
    "check_schedule",
    "dependences",
    "domains",
    "parallel_loops",
    "relations",
]
