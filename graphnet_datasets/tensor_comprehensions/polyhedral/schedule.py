"""An execution order as tuples of quasi-affine expressions, and its tree for people to read."""

from __future__ import annotations

import dataclasses

from .isl import isl


@dataclasses.dataclass(frozen=True, slots=True)
class StatementSchedule:
    """When the points of (a part of) one statement are executed.

    Attributes:
        name: the statement, as in `domains.statement_name`.
        indices: isl's names of its indices.
        condition: which points, as an isl condition; "" for all.
        time: the tuple, an isl expression of the indices for each member.
    """

    name: str
    indices: tuple[str, ...]
    condition: str
    time: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Loop:
    """A member of the common tuple: what it is called, and what it is for."""

    name: str
    kind: str


@dataclasses.dataclass(frozen=True, slots=True)
class Nested:
    """The statements that share loops; the members of their tuples after the first."""

    loops: tuple[Loop, ...]
    statements: tuple[StatementSchedule, ...]
    num_parallel: int = 0
    note: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Schedule:
    """Nests that are executed one after the other; the first member of each tuple says which.

    `str` gives the tree as text; `to_svg` (in `picture`) draws it.
    """

    nests: tuple[Nested, ...]

    @property
    def rank(self) -> int:
        """The length of the longest tuple, that of the sequence included."""
        return 1 + max((len(each.loops) for each in self.nests), default=0)

    def to_map(self):
        """Return the order as an isl union map to tuples of one length."""
        parts = []
        for place, nest in enumerate(self.nests):
            for each in nest.statements:
                time = [str(place), *each.time]
                time += ["0"] * (self.rank - len(time))
                condition = f" : {each.condition}" if each.condition else ""
                parts.append(
                    f"{each.name}[{', '.join(each.indices)}] -> [{', '.join(time)}]{condition}"
                )
        return isl().UnionMap("{ " + "; ".join(parts) + " }")

    def _repr_html_(self) -> str:
        """Return the picture that a notebook shows."""
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
            for each in nest.statements:
                where = f" where {each.condition}" if each.condition else ""
                points = f"{each.name}[{', '.join(each.indices)}]"
                lines.append(f"{'  ' * depth}{points} at ({', '.join(each.time)}){where}")
        return "\n".join(lines)
