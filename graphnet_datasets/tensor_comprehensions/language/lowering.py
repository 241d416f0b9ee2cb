"""Lowering of typed expressions to instance expressions with numeric sizes and affine
subscripts.
"""

from __future__ import annotations

from typing import Literal

from ...errors import RangeInferenceError
from .affine import Affine
from .expressions import (
    Access,
    Binary,
    BinaryOperator,
    Cast,
    Constant,
    Expression,
    Load,
    Select,
    Size,
    cast,
    rebuild,
)
from .guards import Box, Guards, conditions, is_proven, tighten
from .instance import Precondition
from .linear import Sizes, interval, linear
from .ranges import Bound, Bounds, limits
from .spans import failure
from .types import BOOL, INT32

Check = Literal["", "assumed", "clamp"]


class Lowering:
    """Lowers the expressions of one statement and collects unproven preconditions.

    Attributes:
        preconditions: assumed conditions, in order.
        scanned: the tensor that a scan writes; reads of it that are out of range return 0.
    """

    def __init__(
        self,
        number: int,
        box: Box,
        sizes: Sizes,
        bounds: Bounds,
        check_bounds: bool,
        scanned: str = "",
    ) -> None:
        self.number = number
        self.box = box
        self.sizes = sizes
        self.bounds = bounds
        self.check_bounds = check_bounds
        self.scanned = scanned
        self.preconditions: list[Precondition] = []

    def lower(self, node: Expression, guards: Guards = ()) -> Expression:
        """Return the lowered form of an expression evaluated under `guards`."""
        match node:
            case Size():
                value = self.sizes.of(node)
                if value is None:
                    raise failure(
                        f"The sizes of `{node.name}` are unknown before it is written. Declare "
                        "them in the returns.",
                        node.span,
                        RangeInferenceError,
                    )
                return Constant(value, INT32, node.span)
            case Access(tensor=self.scanned) | Cast(operand=Access(tensor=self.scanned)):
                return self.earlier(node, guards)
            case Access() if node.tensor in self.sizes.constants and not node.subscripts:
                return Constant(self.sizes.constants[node.tensor], node.type, node.span)
            case Access():
                return self.load(node, guards)
            case Select():
                satisfied = guards + conditions(node.condition, self.sizes, True)
                violated = guards + conditions(node.condition, self.sizes, False)
                if tighten(self.box, satisfied) is None:  # the condition never holds
                    return self.lower(node.negative, violated)
                if tighten(self.box, violated) is None:
                    return self.lower(node.positive, satisfied)
                return Select(
                    self.lower(node.condition, guards),
                    self.lower(node.positive, satisfied),
                    self.lower(node.negative, violated),
                    node.type,
                    node.span,
                )
            case Binary(operator="&&" | "||"):
                more = guards + conditions(node.left, self.sizes, node.operator == "&&")
                left, right = self.lower(node.left, guards), self.lower(node.right, more)
                return Binary(node.operator, left, right, node.type, node.span)
            case _:
                return rebuild(node, lambda child: self.lower(child, guards))

    def earlier(self, node: Access | Cast, guards: Guards) -> Expression:
        """Return a read of an earlier element of a scan, or 0 before the first element."""
        access = node if isinstance(node, Access) else node.operand
        assert isinstance(access, Access)  # noqa: S101 (the patterns of `lower`)
        subscripts = []
        guard: Expression | None = None
        for subscript, bound in zip(access.subscripts, self.bounds[self.scanned], strict=True):
            form = linear(subscript, self.sizes)
            assert form is not None  # noqa: S101 (the checker accepts only such reads)
            subscripts.append(form.affine)
            begin, end = bound.pair
            bounds: tuple[tuple[BinaryOperator, Affine, int], ...] = (
                (">=", form.affine - begin, begin),
                ("<", -form.affine + (end - 1), end),
            )
            for operator, gap, limit in bounds:
                if not is_proven(gap, self.box, guards):
                    edge = Constant(limit, INT32)
                    guard = Binary(operator, self.lower(subscript, guards), edge, BOOL)
        load = Load(
            access.tensor,
            tuple(subscripts),
            access.type,
            ("",) * len(subscripts),
            guard is not None or bool(guards),
            access.span,
        )
        value = load if node is access else Cast(load, node.type, node.span)
        if guard is None:
            return value
        return Select(guard, value, cast(Constant(0, INT32), node.type), node.type, node.span)

    def load(self, node: Access, guards: Guards) -> Load:
        """Return an access with affine subscripts and the checks that its range needs."""
        if node.tensor not in self.bounds:
            raise failure(
                f"`{node.tensor}` is read before it is written, and its sizes are not declared. "
                "Declare them.",
                node.span,
                RangeInferenceError,
            )
        subscripts: list[Affine | Expression] = []
        checks: list[Check] = []
        is_guarded = False
        for subscript, bound in zip(node.subscripts, self.bounds[node.tensor], strict=True):
            value = linear(subscript, self.sizes)
            lowered = self.lower(subscript, guards) if value is None else value.affine
            subscripts.append(lowered)
            if bound.begin.value == bound.end.value and not guards:
                raise failure(
                    f"`{node.tensor}` has no elements along a dimension, but is accessed there. "
                    "Check the sizes of the inputs.",
                    node.span,
                    RangeInferenceError,
                )
            check, needs_guard = self.check(node, subscript, bound, guards)
            checks.append(check)
            is_guarded = is_guarded or needs_guard
        return Load(node.tensor, tuple(subscripts), node.type, tuple(checks), is_guarded, node.span)

    def check(
        self, node: Access, subscript: Expression, bound: Bound, guards: Guards
    ) -> tuple[Check, bool]:
        """Return the check a subscript needs, and whether guards keep it in range."""
        begin, end = bound.pair
        demands = limits(subscript, bound, self.sizes)
        if demands:
            expressions = [demand.affine for demand in demands]
            if all(is_proven(expression, self.box, ()) for expression in expressions):
                return "", False
            if guards and all(
                is_proven(expression, self.box, guards) for expression in expressions
            ):
                return "", True
        tight = tighten(self.box, guards) or self.box
        reached = interval(subscript, tight, self.sizes)
        if reached is not None and begin <= reached[0] and reached[1] < end:
            return "", bool(guards)
        text = " ".join(subscript.span.text.split()) if subscript.span else node.tensor
        text = f"{bound.begin.symbolic} <= {text} < {bound.end.symbolic}"
        if not bound.end.symbolic.is_constant:
            text += f" (= {end})"
        is_violated = bool(demands) and not guards
        self.preconditions.append(Precondition(text, self.number, is_violated))
        return ("clamp" if self.check_bounds else "assumed"), bool(guards)
