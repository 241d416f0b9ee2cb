"""What holds for every sample, whether it came from a directory, a row or a live model."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from ..errors import SampleError
from .arguments import INT64_MAX, INT64_MIN, MAX_TEXT_LENGTH, Ref, find_problem
from .symbols import free_symbols, is_symbol_name
from .vocabulary import (
    CALIBRATIONS,
    ITEM_SIZE_BYTES,
    KINDS,
    RELATIONS,
    ROLES,
    TASKS,
    framework_names,
    is_framework,
)

if TYPE_CHECKING:
    from .sample import Input, Op, Sample, Value

MAX_RANK = 64
MAX_VALUES = 1_000_000
MAX_SOURCE_LENGTH = 200_000
"""Characters of the source of one custom operator."""

_TENSOR_ROLES = frozenset(ROLES) - {"symbol", "scalar"}
_ALWAYS_FIT = frozenset((type(None), bool, float))
"""Types of arguments of which all may be used."""

SCALAR_DTYPES = ("int64", "float64", "bool")
"""Of inputs that are Python numbers."""

_TARGET = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*\Z")
_KEYWORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
_QUALIFIED_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}::[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_OWN_LIBRARIES = frozenset({"aten", "prim", "prims"})
"""Libraries of operators whose names only the operator table gives a meaning."""
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=@-]*(/[A-Za-z0-9_][A-Za-z0-9_.+=@-]*)*\Z")


def check_sample(sample: Sample) -> None:
    """Check every invariant of a sample.

    Raises:
        SampleError: one is broken; the message names the operator or input.
    """
    _Checker(sample).check()


class _Checker:
    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.symbol_names = frozenset(symbol.name for symbol in sample.symbols)
        self._known_targets: set[str] = set()
        # By identity: the sample holds them all. What an operator may use, later ones may as well.
        self._known_values: set[int] = set()
        self._known_args: set[int] = set()

    def check(self) -> None:
        sample = self.sample
        if not _ID.match(sample.id) or len(sample.id) > 512:
            raise SampleError(
                f"The sample id {sample.id[:80]!r} is not a path of letters, digits and "
                "`_.+=@-` with parts separated by `/`. Rename the sample."
            )
        if not is_framework(sample.framework):
            raise self._error(
                "the sample", f"has framework {sample.framework!r}", framework_names()
            )
        if sample.task not in TASKS:
            raise self._error("the sample", f"has task {sample.task!r}", TASKS)
        if sample.kind not in KINDS:
            raise self._error("the sample", f"has kind {sample.kind!r}"[:100], KINDS)
        if sample.calibration not in CALIBRATIONS:
            raise self._error("the sample", f"has calibration {sample.calibration!r}", CALIBRATIONS)
        num_inputs = len(sample.inputs)
        if num_inputs + len(sample.ops) > MAX_VALUES:
            raise self._error("the sample", f"has more than {MAX_VALUES} values", ())
        self._check_symbols()
        self._check_custom_operators()
        for index, each in enumerate(sample.inputs):
            if not self._is_plain(each):
                self._check_input(index, each)
        for index, op in enumerate(sample.ops):
            self._check_op(index, op, num_inputs + index)
        self._check_arg(sample.outputs, "the output structure", num_inputs + len(sample.ops))

    def _check_symbols(self) -> None:
        if len(self.symbol_names) != len(self.sample.symbols):
            raise self._error("the sample", "has two symbols of one name", ())
        for symbol in self.sample.symbols:
            if not is_symbol_name(symbol.name):
                raise self._error("a symbol", f"has the name {symbol.name[:80]!r}", ())
            for bound in (symbol.hint, symbol.lower, symbol.upper):
                if bound is not None and not INT64_MIN <= bound <= INT64_MAX:
                    raise self._error(f"symbol `{symbol.name}`", "goes beyond 64 bits", ())
        for constraint in self.sample.constraints:
            if constraint.relation not in RELATIONS:
                raise self._error(
                    "a constraint", f"has relation {constraint.relation!r}", RELATIONS
                )
            for side in (constraint.left, constraint.right):
                self._check_expression(side, "a constraint")

    def _check_custom_operators(self) -> None:
        names = set()
        for each in self.sample.custom_operators:
            if type(each.name) is not str or not _QUALIFIED_NAME.match(each.name):
                raise self._error(
                    "a custom operator", f"has the name {each.name!r}"[:100], ("`library::name`",)
                )
            where = f"the custom operator `{each.name}`"
            if each.name.partition("::")[0] in _OWN_LIBRARIES:
                raise self._error(where, "has the name of an operator of torch itself", ())
            if each.name in names:
                raise self._error(where, "is there twice", ())
            names.add(each.name)
            self._check_text(each.schema, where)
            if type(each.source) is not str or len(each.source) > MAX_SOURCE_LENGTH:
                raise self._error(
                    where, f"has source of more than {MAX_SOURCE_LENGTH} characters", ()
                )
            if type(each.source_hash) is not str or not _SHA256.match(each.source_hash):
                raise self._error(
                    where, f"has the source hash {each.source_hash!r}"[:100],
                    ("64 hexadecimal digits",),
                )  # fmt: skip

    def _is_plain(self, each: Input) -> bool:
        """Tell whether an input is a tensor of integer sizes without elements that is right."""
        value = each.value
        shape = value.shape
        return (
            each.role in _TENSOR_ROLES
            and each.data is None
            and type(each.source_name) is type(each.device) is str
            and len(each.source_name) <= MAX_TEXT_LENGTH
            and len(each.device) <= MAX_TEXT_LENGTH
            and value.dtype in ITEM_SIZE_BYTES
            and value.stride is None
            and type(shape) is tuple
            and len(shape) <= MAX_RANK
            and all([type(dim) is int and 0 <= dim <= INT64_MAX for dim in shape])
        )

    def _check_input(self, index: int, each: Input) -> None:
        where = f"input {index}"
        if each.role not in ROLES:
            raise self._error(where, f"has role {each.role!r}", ROLES)
        for text in (each.source_name, each.device):
            if type(text) is not str or len(text) > MAX_TEXT_LENGTH:
                self._check_text(text, where)
        if each.role == "symbol":
            if not each.source_name:
                raise self._error(where, "is a symbol without a name", ())
            self._check_expression(each.source_name, where)
            return
        if each.value.dtype is None or each.value.shape is None:
            raise self._error(where, "has no dtype or no shape", ())
        if id(each.value) not in self._known_values:
            self._check_value(each.value, where)
            self._known_values.add(id(each.value))
        if each.data is not None:
            expected = (
                math.prod(self.sample.shape_of(each.value) or ())
                * ITEM_SIZE_BYTES[each.value.dtype]
            )
            if len(each.data) != expected:
                raise self._error(
                    where, f"stores {len(each.data)} bytes of data where it has {expected}", ()
                )
        elif each.role == "scalar":
            raise self._error(where, "is a scalar without data", ())
        if each.role == "scalar":
            if each.value.shape != ():
                raise self._error(
                    where, f"is a scalar of shape {each.value.shape!r}"[:120], ("()",)
                )
            if each.value.dtype not in SCALAR_DTYPES:
                raise self._error(where, f"is a scalar of dtype {each.value.dtype}", SCALAR_DTYPES)

    def _check_op(self, index: int, op: Op, own_value: int) -> None:
        if op.target not in self._known_targets:
            if not _TARGET.match(op.target) or len(op.target) > 200:
                raise self._error(f"op {index}", f"has the target {op.target[:80]!r}", ())
            self._known_targets.add(op.target)
        if type(op.module) is not str or len(op.module) > MAX_TEXT_LENGTH:
            self._check_text(op.module, self._where(index))
        for arg in op.args:
            # Nearly all are references and plain literals, of which most of the time is made.
            if type(arg) is Ref:
                if type(arg.index) is int and 0 <= arg.index < own_value:
                    continue
            elif (
                type(arg) in _ALWAYS_FIT
                or (type(arg) is int and INT64_MIN <= arg <= INT64_MAX)
                or id(arg) in self._known_args
            ):
                continue
            self._check_arg(arg, self._where(index), own_value)
            self._known_args.add(id(arg))
        if op.kwargs:
            where = self._where(index)
            for keyword, arg in op.kwargs:
                if not _KEYWORD.match(keyword):
                    raise self._error(where, f"has the keyword {keyword[:80]!r}", ())
                self._check_arg(arg, where, own_value)
            if len({keyword for keyword, _ in op.kwargs}) != len(op.kwargs):
                raise self._error(where, "gives one keyword twice", ())
        for value in op.results or ():
            if id(value) not in self._known_values:
                self._check_value(value, self._where(index))
                self._known_values.add(id(value))

    def _where(self, index: int) -> str:
        return f"op {index} (`{self.sample.ops[index].target}`)"

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
            raise self._error(where, f"has {type(text).__name__} where text is expected", ())
        unknown = free_symbols(text) - self.symbol_names
        if unknown:
            raise self._error(
                where, f"uses the undeclared symbol `{min(unknown)}`", tuple(self.symbol_names)
            )

    def _check_text(self, text: str, where: str) -> None:
        if type(text) is not str or len(text) > MAX_TEXT_LENGTH:
            raise self._error(where, f"has text of more than {MAX_TEXT_LENGTH} characters", ())

    def _check_arg(self, arg: Any, where: str, own_value: int) -> None:
        problem = find_problem(arg, own_value)
        if problem:
            raise self._error(where, problem, ())

    def _error(self, where: str, what: str, accepted: tuple[str, ...]) -> SampleError:
        tail = f" (accepted: {', '.join(accepted)})" if accepted else ""
        return SampleError(f"In sample `{self.sample.id}`, {where} {what}{tail}.")
