"""Invariants of all samples, whether from a directory, a row or a live model."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from ..errors import SampleError
from .arguments import (
    INT64_MAX,
    INT64_MIN,
    MAX_BODY_DEPTH,
    MAX_TEXT_LENGTH,
    Graph,
    Ref,
    find_problem,
)
from .symbols import free_symbols, is_symbol_name
from .vocabulary import (
    CALIBRATIONS,
    ITEM_SIZE_BYTES,
    KINDS,
    RELATIONS,
    ROLES,
    SIGNALS,
    TASKS,
    framework_names,
    is_framework,
)

if TYPE_CHECKING:
    from .sample import Input, Op, Sample, Value

MAX_RANK = 64
MAX_VALUES = 1_000_000
MAX_SOURCE_LENGTH = 200_000
"""Limit in characters for the source of a custom operator."""

_TENSOR_ROLES = frozenset(ROLES) - {"symbol", "scalar"}
_ALWAYS_FIT = frozenset((type(None), bool, float))
"""Types of arguments whose values are all valid."""

SCALAR_DTYPES = ("int64", "float64", "bool")
"""Dtypes of inputs that are Python numbers."""

_TARGET = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*\Z")
_KEYWORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
_QUALIFIED_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}::[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_OWN_LIBRARIES = frozenset({"aten", "prim", "prims"})
"""Libraries whose operators are defined only by the operator table."""
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=@-]*(/[A-Za-z0-9_][A-Za-z0-9_.+=@-]*)*\Z")


def check_sample(sample: Sample) -> None:
    """Check all invariants of a sample.

    Raises:
        SampleError: an invariant is violated; the message names the operator or input.
    """
    _Checker(sample).check()


class _Checker:
    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.symbol_names = frozenset(symbol.name for symbol in sample.symbols)
        self._checked_targets: set[str] = set()
        # Identities are safe while the sample lives; later operators may use more values.
        self._checked_values: set[int] = set()
        self._checked_args: set[int] = set()
        self._num_body_values = 0

    def check(self) -> None:
        sample = self.sample
        if not _ID.match(sample.id) or len(sample.id) > 512:
            raise SampleError(
                f"The sample id {sample.id[:80]!r} is not a path of letters, digits and "
                "`_.+=@-` with parts separated by `/`. Rename the sample."
            )
        if not is_framework(sample.framework):
            raise self._error("", f"has framework {sample.framework!r}", framework_names())
        if sample.task not in TASKS:
            raise self._error("", f"has task {sample.task!r}", TASKS)
        if sample.kind not in KINDS:
            raise self._error("", f"has kind {sample.kind!r}"[:100], KINDS)
        if sample.calibration not in CALIBRATIONS:
            raise self._error("", f"has calibration {sample.calibration!r}", CALIBRATIONS)
        num_inputs = len(sample.inputs)
        if num_inputs + len(sample.ops) > MAX_VALUES:
            raise self._error("", f"has more than {MAX_VALUES} values", ())
        self._check_symbols()
        self._check_custom_operators()
        for index, argument in enumerate(sample.inputs):
            if not self._is_plain(argument):
                self._check_input(index, argument)
        for index, op in enumerate(sample.ops):
            self._check_op(index, op, num_inputs + index, "", 0)
        self._check_arg(sample.outputs, "the output structure", num_inputs + len(sample.ops))

    def _check_symbols(self) -> None:
        if len(self.symbol_names) != len(self.sample.symbols):
            raise self._error("", "has two symbols with the same name", ())
        for symbol in self.sample.symbols:
            if not is_symbol_name(symbol.name):
                raise self._error("a symbol", f"has the name {symbol.name[:80]!r}", ())
            for bound in (symbol.hint, symbol.lower, symbol.upper):
                if bound is not None and not INT64_MIN <= bound <= INT64_MAX:
                    raise self._error(
                        f"symbol `{symbol.name}`",
                        "has a hint or bound that does not fit into 64 bits",
                        (),
                    )
        for constraint in self.sample.constraints:
            if constraint.relation not in RELATIONS:
                raise self._error(
                    "a constraint", f"has relation {constraint.relation!r}", RELATIONS
                )
            for side in (constraint.left, constraint.right):
                self._check_expression(side, "a constraint")

    def _check_custom_operators(self) -> None:
        names = set()
        for operator in self.sample.custom_operators:
            if type(operator.name) is not str or not _QUALIFIED_NAME.match(operator.name):
                raise self._error(
                    "a custom operator",
                    f"has the name {operator.name!r}"[:100],
                    ("`library::name`",),
                )
            where = f"the custom operator `{operator.name}`"
            if operator.name.partition("::")[0] in _OWN_LIBRARIES:
                raise self._error(where, "has a name reserved for torch's own operators", ())
            if operator.name in names:
                raise self._error(where, "is defined twice", ())
            names.add(operator.name)
            self._check_text(operator.schema, where)
            if type(operator.source) is not str or len(operator.source) > MAX_SOURCE_LENGTH:
                raise self._error(
                    where, f"has source of more than {MAX_SOURCE_LENGTH} characters", ()
                )
            if type(operator.source_hash) is not str or not _SHA256.match(operator.source_hash):
                raise self._error(
                    where, f"has the source hash {operator.source_hash!r}"[:100],
                    ("64 hexadecimal digits",),
                )  # fmt: skip

    def _is_plain(self, argument: Input) -> bool:
        """Return whether an input is a valid tensor with integer sizes and without stored data."""
        value = argument.value
        shape = value.shape
        return (
            argument.role in _TENSOR_ROLES
            and argument.data is None
            and not argument.signal
            and type(argument.source_name) is type(argument.device) is str
            and len(argument.source_name) <= MAX_TEXT_LENGTH
            and len(argument.device) <= MAX_TEXT_LENGTH
            and value.dtype in ITEM_SIZE_BYTES
            and value.stride is None
            and type(shape) is tuple
            and len(shape) <= MAX_RANK
            and all([type(dim) is int and 0 <= dim <= INT64_MAX for dim in shape])
        )

    def _check_input(self, index: int, argument: Input) -> None:
        where = f"input {index}"
        if argument.role not in ROLES:
            raise self._error(where, f"has role {argument.role!r}", ROLES)
        if argument.signal and (argument.signal not in SIGNALS or argument.role != "input"):
            raise self._error(
                where, f"has role {argument.role!r} and signal {argument.signal!r}"[:120], SIGNALS
            )
        for text in (argument.source_name, argument.device):
            if type(text) is not str or len(text) > MAX_TEXT_LENGTH:
                self._check_text(text, where)
        if argument.role == "symbol":
            if not argument.source_name:
                raise self._error(where, "is a symbol without a name", ())
            self._check_expression(argument.source_name, where)
            return
        if argument.value.dtype is None or argument.value.shape is None:
            raise self._error(where, "has no dtype or no shape", ())
        if id(argument.value) not in self._checked_values:
            self._check_value(argument.value, where)
            self._checked_values.add(id(argument.value))
        if argument.data is not None:
            expected = (
                math.prod(self.sample.shape_of(argument.value) or ())
                * ITEM_SIZE_BYTES[argument.value.dtype]
            )
            if len(argument.data) != expected:
                raise self._error(
                    where, f"stores {len(argument.data)} bytes of data instead of {expected}", ()
                )
        elif argument.role == "scalar":
            raise self._error(where, "is a scalar without data", ())
        if argument.role == "scalar":
            if argument.value.shape != ():
                raise self._error(
                    where, f"is a scalar of shape {argument.value.shape!r}"[:120], ("()",)
                )
            if argument.value.dtype not in SCALAR_DTYPES:
                raise self._error(
                    where, f"is a scalar of dtype {argument.value.dtype}", SCALAR_DTYPES
                )

    def _check_op(self, index: int, op: Op, own_value: int, outer: str, depth: int) -> None:
        """Check an operator, which is inside of `depth` bodies of the operators `outer`."""
        if op.target not in self._checked_targets:
            if not _TARGET.match(op.target) or len(op.target) > 200:
                raise self._error(f"{outer}op {index}", f"has the target {op.target[:80]!r}", ())
            self._checked_targets.add(op.target)
        if type(op.module) is not str or len(op.module) > MAX_TEXT_LENGTH:
            self._check_text(op.module, _where(outer, index, op))
        for arg in op.args:
            # A fast path for references and plain literals, which are nearly all arguments.
            if type(arg) is Ref:
                if type(arg.index) is int and 0 <= arg.index < own_value:
                    continue
            elif (
                type(arg) in _ALWAYS_FIT
                or (type(arg) is int and INT64_MIN <= arg <= INT64_MAX)
                or id(arg) in self._checked_args
            ):
                continue
            if type(arg) is Graph:
                self._check_body(arg, _where(outer, index, op), depth + 1)
                continue
            self._check_arg(arg, _where(outer, index, op), own_value)
            self._checked_args.add(id(arg))
        if op.kwargs:
            where = _where(outer, index, op)
            for keyword, arg in op.kwargs:
                if not _KEYWORD.match(keyword):
                    raise self._error(where, f"has the keyword {keyword[:80]!r}", ())
                self._check_arg(arg, where, own_value)
            if len({keyword for keyword, _ in op.kwargs}) != len(op.kwargs):
                raise self._error(where, "has a repeated keyword", ())
        for value in op.results or ():
            if id(value) not in self._checked_values:
                self._check_value(value, _where(outer, index, op))
                self._checked_values.add(id(value))

    def _check_body(self, body: Graph, where: str, depth: int) -> None:
        """Check a body inside of `depth - 1` other bodies."""
        if depth > MAX_BODY_DEPTH:
            raise self._error(where, f"nests bodies deeper than {MAX_BODY_DEPTH} levels", ())
        if type(body.num_inputs) is not int or body.num_inputs < 0:
            raise self._error(where, "has a body with an invalid number of inputs", ())
        self._num_body_values += body.num_inputs + len(body.ops)
        if self._num_body_values > MAX_VALUES:
            raise self._error("", f"has more than {MAX_VALUES} values in bodies", ())
        # Values of a body have their own numbers, so the checks of other arguments do not apply.
        outer_args, self._checked_args = self._checked_args, set()
        for index, op in enumerate(body.ops):
            if op.results is not None:
                raise self._error(where, "has a body whose operators have recorded results", ())
            self._check_op(index, op, body.num_inputs + index, f"{where}, ", depth)
        self._check_arg(
            body.outputs,
            f"{where}, the output structure of a body",
            body.num_inputs + len(body.ops),
        )
        self._checked_args = outer_args

    def _check_value(self, value: Value, where: str) -> None:
        if value.dtype is not None and value.dtype not in ITEM_SIZE_BYTES:
            raise self._error(where, f"has dtype {value.dtype!r}", tuple(ITEM_SIZE_BYTES))
        for dims, lowest in ((value.shape, 0), (value.stride, INT64_MIN)):
            for dim in dims or ():
                if isinstance(dim, str):
                    self._check_expression(dim, where)
                elif type(dim) is not int or not lowest <= dim <= INT64_MAX:
                    raise self._error(where, f"has the dimension or stride {dim!r}"[:120], ())
            if dims is not None and len(dims) > MAX_RANK:
                raise self._error(where, f"has more than {MAX_RANK} dimensions", ())

    def _check_expression(self, text: str, where: str) -> None:
        if type(text) is not str:
            raise self._error(where, f"has a {type(text).__name__} instead of a string", ())
        unknown = free_symbols(text) - self.symbol_names
        if unknown:
            raise self._error(
                where, f"uses the undeclared symbol `{min(unknown)}`", tuple(self.symbol_names)
            )

    def _check_text(self, text: str, where: str) -> None:
        if type(text) is not str or len(text) > MAX_TEXT_LENGTH:
            raise self._error(where, f"has a string of more than {MAX_TEXT_LENGTH} characters", ())

    def _check_arg(self, arg: Any, where: str, own_value: int) -> None:
        problem = find_problem(arg, own_value)
        if problem:
            raise self._error(where, problem, ())

    def _error(self, where: str, problem: str, accepted: tuple[str, ...]) -> SampleError:
        tail = f" (accepted: {', '.join(accepted)})" if accepted else ""
        subject = (
            f"In sample `{self.sample.id}`, {where}" if where else f"Sample `{self.sample.id}`"
        )
        return SampleError(f"{subject} {problem}{tail}.")


def _where(outer: str, index: int, op: Op) -> str:
    return f"{outer}op {index} (`{op.target}`)"
