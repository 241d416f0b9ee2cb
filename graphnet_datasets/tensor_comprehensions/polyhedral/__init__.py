"""Domains, dependences and schedules of instances as integer sets (isl)."""

from .dependences import Dependences, dependences
from .domains import Domains, domains
from .legality import check_schedule
from .relations import Relations, relations
from .schedule import Loop, Nested, Schedule, StatementSchedule

__all__ = [
    "Dependences",
    "Domains",
    "Loop",
    "Nested",
    "Relations",
    "Schedule",
    "StatementSchedule",
    "check_schedule",
    "dependences",
    "domains",
    "relations",
]
