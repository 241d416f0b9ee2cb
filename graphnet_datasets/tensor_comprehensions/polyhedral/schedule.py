"""Schedules: execution orders as tuples of quasi-affine expressions."""

from __future__ import annotations

import dataclasses

from .isl import isl


@dataclasses.dataclass(frozen=True, slots=True)
class StatementSchedule:
    """Execution times of the points of (a part of) a statement.

    Attributes:
        name: the statement, as in `domains.statement_name`.
        indices: isl names of its indices.
        condition: the points covered, as an isl condition; "" for all.
        time: isl expressions of the indices, one per member of the time tuple.
    """

    name: str
    indices: tuple[str, ...]
    condition: str
    time: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Loop:
    """A member of the time tuple: its name and its purpose."""

    name: str
    kind: str


@dataclasses.dataclass(frozen=True, slots=True)
class Nested:
    """Statements that share loops, which are the time members after the first."""

    loops: tuple[Loop, ...]
    statements: tuple[StatementSchedule, ...]
    num_parallel: int = 0
    note: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Schedule:
    """Nests executed one after the other; the first time member is the position of the nest.

    `str` formats the schedule as a tree; `to_svg` (in `picture`) draws it.
    """

    nests: tuple[Nested, ...]

    @property
    def rank(self) -> int:
        """Length of the longest time tuple, including the position of the nest."""
        return 1 + max((len(nest.loops) for nest in self.nests), default=0)

    def to_map(self):
        """Return the order as an isl union map to tuples of equal length."""
        parts = []
        for place, nest in enumerate(self.nests):
            for statement in nest.statements:
                time = [str(place), *statement.time]
                time += ["0"] * (self.rank - len(time))
                condition = f" : {statement.condition}" if statement.condition else ""
                parts.append(
                    f"{statement.name}[{', '.join(statement.indices)}] -> "
                    f"[{', '.join(time)}]{condition}"
                )
        return isl().UnionMap("{ " + "; ".join(parts) + " }")

    def _repr_html_(self) -> str:
        """Return the SVG shown by notebooks."""
        from .picture import to_svg

        return to_svg(self)

    def __str__(self) -> str:
        lines = ["sequence"]
        for place, nest in enumerate(self.nests):
            lines.append(f"  {place}: {nest.note or 'nest'}")
            depth = 2
            for number, loop in enumerate(nest.loops):
                parallel = " parallel" if number < nest.num_parallel else ""
                lines.append(f"{'  ' * depth}{loop.kind}{parallel}: {loop.name}")
                depth += 1
            for statement in nest.statements:
                where = f" where {statement.condition}" if statement.condition else ""
                points = f"{statement.name}[{', '.join(statement.indices)}]"
                lines.append(f"{'  ' * depth}{points} at ({', '.join(statement.time)}){where}")
        return "\n".join(lines)
