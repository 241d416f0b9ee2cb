"""Dependences that a schedule must respect: all of them, or only those within statements.

The second form is used if the analysis of all dependences would take too long. The statements are
then executed in source order, which respects every dependence between two statements, so that only
the dependences of a statement on itself are checked.
"""

from __future__ import annotations

import dataclasses
import itertools

from ...errors import IllegalScheduleError
from ..language.instance import Instance
from .dependences import Dependences, dependences
from .domains import Domains, domains
from .isl import MAX_OPERATIONS, limited
from .legality import check_schedule
from .schedule import Nested, Schedule
from .scheduling import parallel_loops


@dataclasses.dataclass(frozen=True)
class Relations:
    """Sets and dependences of an instance.

    Attributes:
        parts: groups of statements that are analysed together, with their dependences: one part
            for all statements, or one per statement.
        is_whole: True if one part contains all statements.
    """

    parts: tuple[tuple[Domains, Dependences], ...]
    is_whole: bool
    max_operations: int = MAX_OPERATIONS

    def parallel_loops(self) -> dict[int, int]:
        """Return the number of parallel loops of each statement, by statement number.

        Raises:
            SchedulingLimitError: the analysis exceeds its limit.
        """
        if not self.is_whole:
            return {}
        with limited(self.max_operations):
            return parallel_loops(*self.parts[0])

    def check(self, schedule: Schedule) -> None:
        """Check that a schedule respects the dependences (see `check_schedule`).

        Raises:
            IllegalScheduleError: the schedule is illegal.
            SchedulingLimitError: the check exceeds its limit.
        """
        if not self.is_whole:
            _check_order(schedule)
        for place, (model, part_dependences) in enumerate(self.parts):
            part = schedule if self.is_whole else _of_statement(schedule, place)
            with limited(self.max_operations):
                check_schedule(model, part_dependences, part)


def relations(
    instance: Instance, *, is_whole: bool = True, max_operations: int = MAX_OPERATIONS
) -> Relations:
    """Compute the sets and dependences of an instance.

    Args:
        is_whole: False computes only the dependences of each statement on itself.
        max_operations: limit on isl operations for each part.

    Raises:
        SchedulingLimitError: the analysis exceeds its limit.
    """
    numbers = range(len(instance.statements))
    parts = []
    for selected in [tuple(numbers)] if is_whole else [(number,) for number in numbers]:
        model = domains(instance, selected)
        with limited(max_operations):
            parts.append((model, dependences(model)))
    return Relations(tuple(parts), is_whole, max_operations)


def _number(nest: Nested) -> int:
    """Return the number of the single statement of a nest."""
    numbers = {int(statement.name[1:]) for statement in nest.statements}
    if len(numbers) != 1:
        raise IllegalScheduleError(
            f"Statements {sorted(numbers)} share loops, but their dependences are unknown."
        )
    return numbers.pop()


def _check_order(schedule: Schedule) -> None:
    numbers = [_number(nest) for nest in schedule.nests]
    for before, after in itertools.pairwise(numbers):
        if before > after:
            raise IllegalScheduleError(
                f"Statement {before} would run before statement {after}, which comes first in the "
                "source."
            )


def _of_statement(schedule: Schedule, number: int) -> Schedule:
    """Return the nests that execute (parts of) one statement."""
    return Schedule(tuple(nest for nest in schedule.nests if _number(nest) == number))
