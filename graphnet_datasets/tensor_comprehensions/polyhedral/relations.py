"""What a schedule has to keep: all dependences, or those within each statement.

The second is for definitions whose dependences would take too long. Their statements run one after
the other as in the text, which keeps every dependence between two of them, so that only those of a
statement on itself are left to be checked.
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
    """The sets and dependences of an instance.

    Attributes:
        parts: the statements that are taken together, with their dependences; one part for all
            statements, or one for each.
        is_whole: whether there is one part for all.
    """

    parts: tuple[tuple[Domains, Dependences], ...]
    is_whole: bool
    max_operations: int = MAX_OPERATIONS

    def parallel_loops(self) -> dict[int, int]:
        """Return how many parallel loops each statement has alone, by its number.

        Raises:
            SchedulingLimitError: that would take too long to find out.
        """
        if not self.is_whole:
            return {}
        with limited(self.max_operations):
            return parallel_loops(*self.parts[0])

    def check(self, schedule: Schedule) -> None:
        """Check that a schedule keeps them (see `check_schedule`).

        Raises:
            IllegalScheduleError: it does not.
            SchedulingLimitError: that would take too long to find out.
        """
        if not self.is_whole:
            _check_order(schedule)
        for place, (model, needed) in enumerate(self.parts):
            part = schedule if self.is_whole else _of_statement(schedule, place)
            with limited(self.max_operations):
                check_schedule(model, needed, part)


def relations(
    instance: Instance, *, is_whole: bool = True, max_operations: int = MAX_OPERATIONS
) -> Relations:
    """Return the sets and dependences of an instance.

    Args:
        is_whole: False for those of each statement on itself only.
        max_operations: what isl may do for each part.

    Raises:
        SchedulingLimitError: they would take too long.
    """
    numbers = range(len(instance.statements))
    parts = []
    for chosen in [tuple(numbers)] if is_whole else [(each,) for each in numbers]:
        model = domains(instance, chosen)
        with limited(max_operations):
            parts.append((model, dependences(model)))
    return Relations(tuple(parts), is_whole, max_operations)


def _number(nest: Nested) -> int:
    """Return the number of a nest's only statement."""
    numbers = {int(each.name[1:]) for each in nest.statements}
    if len(numbers) != 1:
        raise IllegalScheduleError(
            f"Statements {sorted(numbers)} share loops although their dependences are not known."
        )
    return numbers.pop()


def _check_order(schedule: Schedule) -> None:
    numbers = [_number(each) for each in schedule.nests]
    for before, after in itertools.pairwise(numbers):
        if before > after:
            raise IllegalScheduleError(
                f"Statement {before} would run before statement {after}, which the text has first."
            )


def _of_statement(schedule: Schedule, number: int) -> Schedule:
    """Return the nests that execute (parts of) one statement."""
    return Schedule(tuple(each for each in schedule.nests if _number(each) == number))
