"""Verifier of untrusted workloads, traces and targets.

TVM compiles any program, including one that calls `system`. Everything that comes with data must
therefore pass this allow-list before TVM parses it: node types with their fields, intrinsics,
attributes and annotations of workloads; instructions, their attributes and decisions of traces;
keys of targets. Anything else is rejected, and the error names it.

A workload must also stay inside its buffers. The indices of every load and store are bounded by
interval arithmetic over the loops, and a workload whose indices cannot be bounded is rejected.
Schedule primitives preserve the computation and thus its bounds.

This module does not import TVM. The parsed JSON is serialized again for TVM's loader, so that both
parsers see the same data: duplicate keys or trailing data never reach it.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from ..errors import UnverifiedProgramError
from ..terminal import printable_line
from .roles import Role, find_roles

MAX_CHARACTERS = 4 * 2**20
MAX_NODES = 100_000
MAX_EXPANDED_NODES = 1_000_000
"""Nodes of a workload expanded to a tree: TVM visits a shared node once per path."""
MAX_DEPTH = 400
"""Limit of nesting, since TVM's passes are recursive."""
MAX_ELEMENTS = 2**31 - 1
"""Elements per buffer, since TVM may flatten indices in 32 bits."""
MAX_INSTRUCTIONS = 4096
MAX_PLACES = 64
"""Limit of inputs, attributes or outputs of an instruction, and of values of a decision."""

_MAX_INT = 2**63 - 1
_MAX_PARAMETER = 2**31 - 1

INTRINSICS = {
    "prim.if_then_else": 3, "prim.likely": 1, "prim.ceil": 1, "prim.log2": 1, "prim.clz": 1,
    "tirx.acos": 1, "tirx.acosh": 1, "tirx.asin": 1, "tirx.asinh": 1, "tirx.atan": 1,
    "tirx.atan2": 2, "tirx.atanh": 1, "tirx.copysign": 2, "tirx.cos": 1, "tirx.cosh": 1,
    "tirx.erf": 1, "tirx.exp": 1, "tirx.exp10": 1, "tirx.exp2": 1, "tirx.fabs": 1,
    "tirx.floor": 1, "tirx.fmod": 2, "tirx.hypot": 2, "tirx.isfinite": 1, "tirx.isinf": 1,
    "tirx.isnan": 1, "tirx.ldexp": 2, "tirx.log": 1, "tirx.log10": 1, "tirx.log1p": 1,
    "tirx.nearbyint": 1, "tirx.nextafter": 2, "tirx.popcount": 1, "tirx.pow": 2,
    "tirx.round": 1, "tirx.rsqrt": 1, "tirx.sigmoid": 1, "tirx.sin": 1, "tirx.sinh": 1,
    "tirx.sqrt": 1, "tirx.tan": 1, "tirx.tanh": 1, "tirx.trunc": 1,
}  # fmt: skip
"""Intrinsics that a workload may call, all numeric functions, with their number of arguments."""

SCHEDULE_RULES = frozenset({"meta_schedule.pool_avg", "meta_schedule.pool_max"})
"""Values of the annotation `schedule_rule`, which names a function of MetaSchedule."""

FUNCTION_ATTRIBUTES = frozenset({"s_tir", "op_pattern", "global_symbol", "tirx.noalias"})

ANNOTATIONS = frozenset(
    {
        "meta_schedule.parallel", "meta_schedule.random_compute_producer",
        "meta_schedule.tiling_structure", "meta_schedule.unroll_explicit",
        "meta_schedule.unroll_implicit", "meta_schedule.vectorize", "pragma_auto_unroll_max_step",
        "pragma_unroll_explicit", "meta_schedule.auto_tensorize",
    }
)  # fmt: skip
"""Annotations that a trace may set. Others, such as `pragma_import_llvm`, carry code."""

TENSOR_INTRINSICS = frozenset({"dot_16x4_vnni", "dot_16x4_avx512"})
"""TVM's intrinsics for int8 products, which MetaSchedule uses on some processors."""

SCOPES = frozenset({"global", "local"})

_DTYPES = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)|bfloat16|float8_e\w{1,12}")
_NAME = re.compile(r"[\w.\-]{0,200}", re.ASCII)
_VARIABLE = re.compile(r"[blv](0|[1-9]\d{0,5})", re.ASCII)
_STRUCTURE = re.compile(r'"[SR]{1,16}"')
_PROCESSOR = re.compile(r"[\w.+-]{0,64}", re.ASCII)

Interval = tuple[int, int]
Environment = dict[int, Interval]


def verify_workload(text: str) -> str:
    """Return a workload's JSON, serialized again after a complete check.

    Raises:
        UnverifiedProgramError: the workload contains an item that is not on the allow-list, is too
            large, or may access memory outside its buffers; the message names it.
    """
    return _verified(text)[0]


def argument_roles(text: str) -> tuple[Role, ...]:
    """Return the roles of a workload's arguments; their values keep all accesses in bounds.

    Raises:
        UnverifiedProgramError: see `verify_workload`.
    """
    return _verified(text)[1]


@functools.lru_cache(maxsize=2)
def _verified(text: str) -> tuple[str, tuple[Role, ...]]:
    verifier = _Workload(_parse(text, "workload"))
    verifier.check()
    checked = {"root_index": verifier.root, "nodes": verifier.nodes}
    return json.dumps(checked, separators=(",", ":")), tuple(verifier.roles.values())


def verify_trace(text: str) -> Any:
    """Return the parsed JSON of a trace after a complete check.

    Raises:
        UnverifiedProgramError: the trace contains an item that is not on the allow-list; the
            message names it.

    >>> verify_trace('[[["GetSBlock",[],["matmul","main"],["b0"]]],[]]')[1]
    []
    >>> verify_trace('[[["Annotate",["b0","; LLVM"],["pragma_import_llvm"],[]]],[]]')
    Traceback (most recent call last):
    graphnet_datasets.errors.UnverifiedProgramError: A trace sets the annotation \
`pragma_import_llvm`, which is not on the allow-list of the verifier. If you trust its author, \
pass `--trust-remote-code`.
    """
    content = _parse(text, "trace")
    if not (isinstance(content, list) and len(content) == 2):
        _refuse("trace", "is not `[instructions, decisions]`", is_listed=False)
    instructions, decisions = content
    if not (isinstance(instructions, list) and isinstance(decisions, list)):
        _refuse("trace", "is not `[instructions, decisions]`", is_listed=False)
    if max(len(instructions), len(decisions)) > MAX_INSTRUCTIONS:
        _refuse("trace", f"has more than {MAX_INSTRUCTIONS} instructions", is_listed=False)
    defined: set[str] = set()
    for instruction in instructions:
        _check_instruction(instruction, defined)
    for decision in decisions:
        _check_decision(decision, instructions)
    return content


def verify_target(text: str) -> dict[str, Any]:
    """Return the parsed JSON of a target after a complete check.

    Raises:
        UnverifiedProgramError: a key or value is not on the allow-list.

    >>> verify_target('{"kind": "llvm", "mcpu": "znver4", "num-cores": 1}')["mcpu"]
    'znver4'
    """
    content = _parse(text, "target")
    if not isinstance(content, dict):
        _refuse("target", "is not an object", is_listed=False)
    for key, value in content.items():
        check = _TARGET_KEYS.get(key)
        if check is None:
            _refuse("target", f"has the key `{_shown(key)}`")
        if not check(value):
            _refuse("target", f"has `{_shown(value)}` for the key `{key}`")
    if "kind" not in content:
        _refuse("target", "has no `kind`", is_listed=False)
    return content


def _is_int(value: Any, low: int, high: int) -> bool:
    return type(value) is int and low <= value <= high


_TARGET_KEYS: Mapping[str, Callable[[Any], bool]] = {
    "kind": lambda value: value == "llvm",
    "mcpu": lambda value: isinstance(value, str) and _PROCESSOR.fullmatch(value) is not None,
    "num-cores": lambda value: _is_int(value, 1, 4096),
    "keys": lambda value: value == ["cpu"],
    "tag": lambda value: value == "",
}


def _refuse(kind: str, problem: str, *, is_listed: bool = True) -> NoReturn:
    reason = ", which is not on the allow-list of the verifier" if is_listed else ""
    raise UnverifiedProgramError(
        f"A {kind} {problem}{reason}. If you trust its author, pass `--trust-remote-code`."
    )


def _shown(value: Any) -> str:
    return printable_line(value)[:200]


def _parse(text: str, kind: str) -> Any:
    """Return parsed JSON; reject objects with duplicate keys."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) != len(pairs):
            _refuse(kind, "has an object with two keys of one name", is_listed=False)
        return content

    if len(text) > MAX_CHARACTERS:
        _refuse(kind, f"has more than {MAX_CHARACTERS} characters", is_listed=False)
    try:
        return json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        if isinstance(error, UnverifiedProgramError):
            raise
        _refuse(kind, "is not JSON", is_listed=False)


# Traces.


def _check_instruction(instruction: Any, defined: set[str]) -> None:
    is_whole = (
        isinstance(instruction, list)
        and len(instruction) == 4
        and isinstance(instruction[0], str)
        and all(isinstance(part, list) and len(part) <= MAX_PLACES for part in instruction[1:])
    )
    if not is_whole:
        _refuse(
            "trace",
            f"has `{_shown(instruction)[:80]}` in place of an instruction "
            "`[name, inputs, attributes, outputs]`",
            is_listed=False,
        )
    name, inputs, attributes, outputs = instruction
    checks = _INSTRUCTIONS.get(name)
    if checks is None:
        _refuse("trace", f"has the instruction `{_shown(name)}`")
    if name in ("Annotate", "Unannotate"):
        key = attributes[0] if len(attributes) == 1 else attributes
        if not (isinstance(key, str) and key in ANNOTATIONS):
            _refuse("trace", f"sets the annotation `{_shown(key)}`")
    if len(checks) != len(attributes) or not all(
        check(value) for check, value in zip(checks, attributes, strict=True)
    ):
        _refuse("trace", f"has the attributes `{_shown(attributes)}` of the instruction `{name}`")
    for position, value in enumerate(inputs):
        if not _is_input(value, defined) and not (
            name == "Annotate"
            and position == 1
            and isinstance(value, str)
            and (_STRUCTURE.fullmatch(value) or value.strip('"') in TENSOR_INTRINSICS)
        ):
            _refuse("trace", f"has the input `{_shown(value)}` of the instruction `{name}`")
    for output in outputs:
        if not (isinstance(output, str) and _VARIABLE.fullmatch(output)):
            _refuse("trace", f"has the output `{_shown(output)}` of the instruction `{name}`")
        defined.add(output)


def _is_input(value: Any, defined: set[str]) -> bool:
    if isinstance(value, list):
        return len(value) <= MAX_PLACES and all(
            isinstance(item, str) and item in defined for item in value
        )
    if isinstance(value, str):
        return value == "None" or value in defined
    return value is None or _is_int(value, -_MAX_PARAMETER, _MAX_PARAMETER)


def _check_decision(decision: Any, instructions: Sequence[Any]) -> None:
    is_whole = (
        isinstance(decision, list)
        and len(decision) == 2
        and _is_int(decision[0], 0, len(instructions) - 1)
    )
    if not is_whole or not _is_decision(decision[1]):
        _refuse("trace", f"has the decision `{_shown(decision)[:80]}`")
    if not instructions[decision[0]][0].startswith("Sample"):
        _refuse("trace", f"has a decision for the instruction `{instructions[decision[0]][0]}`")


def _is_decision(value: Any) -> bool:
    values = value if isinstance(value, list) else [value]
    return len(values) <= MAX_PLACES and all(_is_int(item, -2, _MAX_PARAMETER) for item in values)


def _is_block_name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _is_parameter(value: Any) -> bool:
    return isinstance(value, bool) or _is_int(value, -_MAX_PARAMETER, _MAX_PARAMETER)


def _is_numbers(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= MAX_PLACES
        and all(type(item) in (int, float) and abs(item) <= _MAX_PARAMETER for item in value)
    )


_Checks = Sequence[Callable[[Any], bool]]
_FLAG: _Checks = (_is_parameter,)
_PAIR: _Checks = (_is_parameter, _is_parameter)
_KEY: _Checks = (lambda value: value in ANNOTATIONS,)
_SCOPED: _Checks = (_is_parameter, lambda value: isinstance(value, str) and value in SCOPES)

_INSTRUCTIONS: Mapping[str, _Checks] = {
    "GetSBlock": (_is_block_name, lambda value: value == "main"),
    "GetLoops": (), "GetChildBlocks": (), "GetProducers": (), "GetConsumers": (),
    "GetOutputBlocks": (), "SampleCategorical": (_is_numbers, _is_numbers),
    "SamplePerfectTile": _PAIR, "SamplePartitionedTile": (*_PAIR, _is_parameter),
    "SampleComputeLocation": (), "Fuse": _FLAG, "Split": _PAIR, "Reorder": (), "AddUnitLoop": (),
    "Parallel": (), "Vectorize": (), "Unroll": (), "CacheRead": _SCOPED, "CacheWrite": _SCOPED,
    "ComputeAt": _PAIR, "ReverseComputeAt": _PAIR, "ComputeInline": (),
    "ReverseComputeInline": (), "DecomposeReduction": (), "RFactor": _FLAG, "Blockize": _FLAG,
    "Tensorize": (
        lambda value: isinstance(value, str) and value in TENSOR_INTRINSICS, _is_parameter,
    ),
    "Annotate": _KEY, "Unannotate": _KEY, "EnterPostproc": (),
}  # fmt: skip
"""Instructions that a trace may contain, with a check for each of their attributes."""


# Workloads.


@dataclasses.dataclass(frozen=True, slots=True)
class _Node:
    """A kind of node, with its category for references from other nodes and its fields.

    A field is `=CHECK` for an inline value, or else the category of the referenced node.
    `CATEGORY?` may be None, and `[CATEGORY]` is an array.
    """

    category: str
    fields: Mapping[str, str]


# Each text lists the category, then the fields with their checks.
_NODES: Mapping[str, _Node] = {
    name: _Node(category, dict(field.split(" ", 1) for field in fields))
    for name, text in {
        "ir.Type": "anything; span none",
        "ir.PrimType": "number; span none; dtype =dtype",
        "ir.TupleType": "tuple; span none; fields [never]",
        "ir.GlobalVar": "global; span none; ty anything|function type; name_hint main",
        "ir.DictAttrs": "attributes; __dict__ map",
        "ir.SourceMap": "sources; source_map map",
        "ir.IRModule": (
            "module; functions map; global_var_map_ map; source_map sources; attrs attributes; "
            "global_infos map"
        ),
        "relax.ShapeType": "shape type; span none; values [int]; ndim =size",
        "relax.expr.ShapeExpr": "shape; span none; ty shape type; values [int]",
        "relax.TensorType": (
            "tensor type; span none; shape shape; dtype number; vdevice none; ndim =size"
        ),
        "relax.FuncType": (
            "function type; span none; params [tensor type]; ret tuple; derive_func none; "
            "purity =flag"
        ),
        "tirx.PrimFunc": (
            "function; span none; ty function type; attrs attributes; params [buffer]; "
            "ret_type tuple; body stmt"
        ),
        "tirx.BufferType": (
            "buffer type; span none; dtype number; storage_scope scope; shape [int]; "
            "strides [never]; elem_offset zero; data_alignment =alignment; offset_factor =one; "
            "layout none; allocated_addr [never]"
        ),
        "tirx.BufferRegionType": "region type; span none",
        "ir.Var": "var; span none; ty number|buffer type; name name",
        "ir.IntImm": "int; span none; ty number; value integer",
        "ir.FloatImm": "float; span none; ty number; value =float",
        "ir.Range": "range; min expr; extent int; span none",
        "ir.TensorLoad": "load; span none; ty number; source buffer; indices [expr]",
        "ir.TensorRegion": "region; span none; ty region type; source buffer; region [range]",
        "ir.Call": (
            "call; span none; ty number; op intrinsic; args [expr]; attrs none; ty_args [never]"
        ),
        **dict.fromkeys(
            (
                "prim.Add", "prim.Sub", "prim.Mul", "prim.Div", "prim.Mod", "prim.FloorDiv",
                "prim.FloorMod", "prim.Min", "prim.Max", "prim.EQ", "prim.NE", "prim.LT",
                "prim.LE", "prim.GT", "prim.GE", "prim.And", "prim.Or",
            ),
            "expr; span none; ty number; a expr; b expr",
        ),
        "prim.Not": "expr; span none; ty number; a expr",
        "prim.Cast": "expr; span none; ty number; value expr",
        "prim.Select": (
            "expr; span none; ty number; condition expr; true_value expr; false_value expr"
        ),
        "tirx.BufferStore": "stmt; span none; buffer buffer; value expr; indices [expr]",
        "tirx.Bind": "stmt; span none; var scalar; value expr",
        "tirx.SeqStmt": "stmt; span none; seq [stmt]",
        "tirx.For": (
            "stmt; span none; loop_var scalar; min int; extent int; kind =zero; body stmt; "
            "thread_binding none; annotations map; step none"
        ),
        "tirx.IterVar": "axis; dom range; var scalar; iter_type =axis; thread_tag empty; span none",
        "s_tir.SBlock": (
            "block; span none; iter_vars [axis]; reads [region]; writes [region]; name_hint name; "
            "alloc_buffers [buffer]; match_buffers [never]; annotations map; init stmt?; body stmt"
        ),
        "s_tir.SBlockRealize": "stmt; span none; iter_values [expr]; predicate expr; block block",
    }.items()
    for category, *fields in [text.split("; ")]
}  # fmt: skip

_EXPRESSIONS = frozenset({"expr", "int", "float", "load", "call", "scalar"})

_VALUES: Mapping[str, Callable[[Any], bool]] = {
    "=dtype": lambda value: isinstance(value, str) and _DTYPES.fullmatch(value) is not None,
    "=size": lambda value: _is_int(value, 0, 64),
    "=flag": lambda value: isinstance(value, bool),
    "=float": lambda value: type(value) in (int, float),
    "=alignment": lambda value: _is_int(value, 1, 64),
    "=one": lambda value: _is_int(value, 1, 1),
    "=zero": lambda value: _is_int(value, 0, 0),
    "=axis": lambda value: _is_int(value, 0, 0) or _is_int(value, 2, 2),
}


class _Workload:
    """The nodes of one workload, checked one by one and then walked as a program."""

    def __init__(self, content: Any) -> None:
        is_whole = (
            isinstance(content, dict)
            # A database of TVM also has `metadata`, its version, which is left out of the result.
            and {"root_index", "nodes"} <= set(content) <= {"root_index", "nodes", "metadata"}
            and isinstance(content["nodes"], list)
            and 0 < len(content["nodes"]) <= MAX_NODES
            and _is_int(content["root_index"], 0, len(content["nodes"]) - 1)
        )
        if not is_whole:
            _refuse(
                "workload",
                f"is not an object of `root_index` and at most {MAX_NODES} `nodes`",
                is_listed=False,
            )
        self.nodes: list[Any] = content["nodes"]
        self.root: int = content["root_index"]
        self.categories: list[str] = []
        self.depths: list[int] = []
        self.sizes: list[int] = []
        self.stored: set[int] = set()
        self.parameters: set[int] = set()
        self.roles: dict[int, Role] = {}

    def check(self) -> None:
        """Check all nodes, and check that the program stays inside its buffers."""
        for index, node in enumerate(self.nodes):
            self.categories.append(self._category(index, node))
        if self.categories[self.root] != "module":
            _refuse("workload", "has a root that is not an `ir.IRModule`", is_listed=False)
        function = self._check_module(self._data(self.root))
        parameters = self._items(function["params"])
        self.parameters = set(parameters)
        for node in self.nodes:
            if node["type"] == "tirx.BufferStore":
                self.stored.add(node["data"]["buffer"])
        sizes = [size for buffer in self.parameters for size in self._shape(buffer)]
        least_size = max(1, min(sizes, default=1))
        smallest = dict.fromkeys(parameters, Role(least_size))
        self.roles = dict(zip(parameters, find_roles(self.nodes, parameters), strict=True))
        try:
            _Walk(self, self.parameters).statement(function["body"], {})
        except UnverifiedProgramError:
            if self.roles == smallest:
                raise
            self.roles = smallest  # sums and products of indices need smaller ones
            _Walk(self, self.parameters).statement(function["body"], {})

    def _category(self, index: int, node: Any) -> str:
        if not (isinstance(node, dict) and isinstance(node.get("type"), str)):
            _refuse("workload", f"has the node `{_shown(node)[:80]}`")
        kind, data = node["type"], node.get("data")
        if set(node) - {"type", "data"}:
            _refuse("workload", f"has other keys than `type` and `data` in a node `{_shown(kind)}`")
        category, children = self._leaf(index, kind, data)
        if category is None:
            category, children = self._inner(index, kind, data)
        self.depths.append(1 + max((self.depths[child] for child in children), default=0))
        self.sizes.append(1 + sum(self.sizes[child] for child in children))
        if self.depths[-1] > MAX_DEPTH or self.sizes[-1] > MAX_EXPANDED_NODES:
            _refuse(
                "workload",
                f"is deeper than {MAX_DEPTH} nodes, or larger than {MAX_EXPANDED_NODES} as a tree",
                is_listed=False,
            )
        return category

    def _leaf(self, index: int, kind: str, data: Any) -> tuple[str | None, Sequence[int]]:
        """Return the category of a node that is a plain value, None for other nodes."""
        if kind == "None" and data is None:
            return "none", ()
        if kind == "bool" and isinstance(data, bool):
            return "boolean", ()
        if kind == "int" and _is_int(data, -_MAX_INT - 1, _MAX_INT):
            return "integer", ()
        if kind == "ffi.String" and isinstance(data, str):
            if not _NAME.fullmatch(data):
                _refuse("workload", f"has the name `{_shown(data)}`")
            return "string", ()
        if kind == "ir.Op" and isinstance(data, str):
            if data not in INTRINSICS:
                _refuse("workload", f"calls `{_shown(data)}`")
            return "intrinsic", ()
        if kind in ("ffi.Array", "ffi.Map") and isinstance(data, list):
            self._check_references(index, kind, data)
            if kind == "ffi.Map" and len(data) % 2:
                _refuse("workload", "has a map with a key without a value", is_listed=False)
            return ("array" if kind == "ffi.Array" else "map"), data
        return None, ()

    def _inner(self, index: int, kind: str, data: Any) -> tuple[str, Sequence[int]]:
        shape = _NODES.get(kind)
        if shape is None:
            _refuse("workload", f"has a node `{_shown(kind)}`")
        if not (isinstance(data, dict) and set(data) == set(shape.fields)):
            _refuse("workload", f"has a node `{kind}` with other fields than {list(shape.fields)}")
        children = [data[name] for name, field in shape.fields.items() if field[0] != "="]
        self._check_references(index, kind, children)
        for name, field in shape.fields.items():
            if not self._fits(field, data[name]):
                _refuse(
                    "workload",
                    f"has `{_shown(self._described(field, data[name]))}` as `{name}` of a node "
                    f"`{kind}`",
                )
        category = shape.category
        if category == "var":
            category = "scalar" if self.categories[data["ty"]] == "number" else "buffer"
        if category == "buffer":
            self._check_buffer(data)
        if category == "call":
            self._check_call(data)
        return category, children

    def _described(self, field: str, value: Any) -> Any:
        return value if field[0] == "=" else self.nodes[value]

    def _check_references(self, index: int, kind: str, references: Sequence[Any]) -> None:
        for reference in references:
            # References to earlier nodes only, which rules out cycles.
            if not _is_int(reference, 0, index - 1):
                _refuse("workload", f"has a node `{kind}` that refers to no node before it")

    def _fits(self, field: str, value: Any) -> bool:
        if field[0] == "=":
            return _VALUES[field](value)
        category, node = self.categories[value], self.nodes[value]
        if field[0] == "[":
            inner = field[1:-1]
            return category == "array" and all(self._fits(inner, item) for item in node["data"])
        if field.endswith("?"):
            return category == "none" or self._fits(field[:-1], value)
        if "|" in field:
            return category in field.split("|")
        if field == "expr":
            return category in _EXPRESSIONS
        if field in ("main", "empty", "name", "scope"):
            texts = {"main": ("main",), "empty": ("",), "scope": ("global", "local", "")}
            return category == "string" and (field == "name" or node["data"] in texts[field])
        if field == "zero":
            return category == "int" and self._integer(value) == 0
        return category == field

    def _check_buffer(self, data: Mapping[str, Any]) -> None:
        shape = self._items(self._data(data["ty"])["shape"])
        sizes = [self._integer(size) for size in shape]
        if min(sizes, default=1) < 1 or math.prod(sizes) > MAX_ELEMENTS:
            _refuse(
                "workload",
                f"has a buffer of shape {sizes}: sizes are at least 1, and a buffer has at most "
                f"{MAX_ELEMENTS} elements",
                is_listed=False,
            )

    def _check_call(self, data: Mapping[str, Any]) -> None:
        name = self.nodes[data["op"]]["data"]
        count = len(self._items(data["args"]))
        if count != INTRINSICS[name]:
            _refuse("workload", f"calls `{name}` with {count} arguments", is_listed=False)

    def _check_module(self, module: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the fields of `main`, which must be the only function."""
        attributes = self._map(self._data(module["attrs"])["__dict__"])
        infos = self._map(module["global_infos"])
        sources = self._map(self._data(module["source_map"])["source_map"])
        if attributes or infos or sources:
            _refuse("workload", "has attributes, sources or infos of its module")
        functions, names = self._map(module["functions"]), self._map(module["global_var_map_"])
        is_single = (
            [self.categories[key] for key, _ in functions] == ["global"]
            and [self.categories[value] for _, value in functions] == ["function"]
            and [self.nodes[key]["data"] for key, _ in names] == ["main"]
            and [value for _, value in names] == [functions[0][0]]
        )
        if not is_single:
            _refuse("workload", "has other functions than `main`", is_listed=False)
        used = {functions[0][1], self.root}
        for index, node in enumerate(self.nodes):
            if node["type"] in ("tirx.PrimFunc", "ir.IRModule") and index not in used:
                _refuse("workload", f"has a second node `{node['type']}`", is_listed=False)
        function = self._data(functions[0][1])
        for key, value in self._map(self._data(function["attrs"])["__dict__"]):
            self._check_attribute(key, value)
        return function

    def _check_attribute(self, key: int, value: int) -> None:
        name, data = self.nodes[key].get("data"), self.nodes[value].get("data")
        if self.categories[key] != "string" or name not in FUNCTION_ATTRIBUTES:
            _refuse("workload", f"has the attribute `{_shown(name)}` of its function")
        expected = {"op_pattern": "integer", "global_symbol": "string"}.get(name, "boolean")
        if self.categories[value] != expected or (name == "global_symbol" and data != "main"):
            _refuse("workload", f"has the value `{_shown(data)}` of the attribute `{name}`")

    def check_annotations(self, place: int) -> None:
        """Raise an error unless all annotations of a block or loop are on the allow-list."""
        for key, value in self._map(place):
            name, data = self.nodes[key].get("data"), self.nodes[value].get("data")
            is_known = self.categories[key] == "string" and (
                (name == "axis" and self.categories[value] == "integer")
                or (name == "schedule_rule" and data in SCHEDULE_RULES)
            )
            if not is_known:
                _refuse("workload", f"has the annotation `{_shown(name)}` = `{_shown(data)}`")

    def _data(self, index: int) -> Mapping[str, Any]:
        return self.nodes[index]["data"]

    def _items(self, index: int) -> list[int]:
        return self.nodes[index]["data"]

    def _map(self, index: int) -> list[tuple[int, int]]:
        data = self._items(index)
        return list(zip(data[::2], data[1::2], strict=True))

    def _integer(self, index: int) -> int:
        """Return the value of an `ir.IntImm`."""
        return self.nodes[self._data(index)["value"]]["data"]

    def _shape(self, buffer: int) -> list[int]:
        return [self._integer(size) for size in self._items(self._buffer(buffer)["shape"])]

    def _buffer(self, index: int) -> Mapping[str, Any]:
        return self._data(self._data(index)["ty"])

    def dtype(self, index: int) -> str:
        """Return the dtype of an expression."""
        return self._data(self._data(index)["ty"])["dtype"]


class _Walk:
    """Interval analysis of all index expressions; raises an error if one leaves its buffer.

    `buffers` grows by the buffers that blocks allocate.
    """

    def __init__(self, workload: _Workload, buffers: set[int]) -> None:
        self.workload = workload
        self.buffers = set(buffers)
        self.declared: set[int] = set()

    def statement(self, index: int, variables: Environment) -> None:
        """Check a statement, with an interval for each integer variable."""
        workload = self.workload
        kind, data = workload.nodes[index]["type"], workload._data(index)
        if kind == "tirx.SeqStmt":
            variables = dict(variables)
            for item in workload._items(data["seq"]):
                self.statement(item, variables)
        elif kind == "tirx.Bind":
            bound = self.expression(data["value"], variables)
            if bound is not None:
                variables[data["var"]] = bound
        elif kind == "tirx.BufferStore":
            self._access(data["buffer"], workload._items(data["indices"]), variables)
            self.expression(data["value"], variables)
        elif kind == "tirx.For":
            workload.check_annotations(data["annotations"])
            start, extent = workload._integer(data["min"]), workload._integer(data["extent"])
            if extent < 1:
                _refuse("workload", f"has a loop of {extent} iterations", is_listed=False)
            inner = {**variables, data["loop_var"]: (start, start + extent - 1)}
            self.statement(data["body"], inner)
        else:
            self._realize(data, variables)

    def _realize(self, data: Mapping[str, Any], variables: Environment) -> None:
        workload, block = self.workload, self.workload._data(data["block"])
        workload.check_annotations(block["annotations"])
        axes, values = workload._items(block["iter_vars"]), workload._items(data["iter_values"])
        if len(axes) != len(values):
            _refuse("workload", "has a block with another number of axes than values")
        self.expression(data["predicate"], variables)
        inner = self._refined(data["predicate"], variables, is_true=True)
        bounds = [self.expression(value, inner) for value in values]
        for axis, bound in zip(axes, bounds, strict=True):
            fields = workload._data(axis)
            domain = self._range(fields["dom"], variables)
            if domain is None or bound is None or not _lies_in(bound, domain):
                _refuse("workload", "binds an axis of a block outside of its domain")
            inner[fields["var"]] = bound
        self.buffers |= set(workload._items(block["alloc_buffers"]))
        outer, self.declared = (
            self.declared,
            {
                workload._data(region)["source"]
                for name in ("reads", "writes")
                for region in workload._items(block[name])
            },
        )
        if workload.categories[block["init"]] != "none":
            self.statement(block["init"], inner)
        self.statement(block["body"], inner)
        self.declared = outer

    def _range(self, index: int, variables: Environment) -> Interval | None:
        fields = self.workload._data(index)
        start = self.expression(fields["min"], variables)
        extent = self.workload._integer(fields["extent"])
        return None if start is None else (start[0], start[1] + extent - 1)

    def _access(self, buffer: int, indices: Sequence[int], variables: Environment) -> None:
        for index in indices:
            if self.workload.dtype(index) not in ("int32", "int64"):
                _refuse(
                    "workload",
                    f"has an index of dtype {self.workload.dtype(index)}; indices are int32 or "
                    "int64",
                    is_listed=False,
                )
        workload = self.workload
        intervals = [self.expression(index, variables) for index in indices]
        name = workload.nodes[workload._data(buffer)["name"]]["data"]
        shape = workload._shape(buffer)
        if buffer not in self.buffers:
            _refuse("workload", f"uses the buffer `{name}` without allocating it", is_listed=False)
        if buffer not in self.declared:
            _refuse(
                "workload",
                f"uses the buffer `{name}`, which its block does not declare to read or write",
                is_listed=False,
            )
        is_inside = len(shape) == len(intervals) and all(
            interval is not None and _lies_in(interval, (0, size - 1))
            for interval, size in zip(intervals, shape, strict=True)
        )
        if not is_inside:
            _refuse(
                "workload",
                f"may use the elements {list(intervals)} of the buffer `{name}` of shape {shape}",
                is_listed=False,
            )

    def expression(self, index: int, variables: Environment) -> Interval | None:
        """Return the interval of an integer expression, None for other expressions; check loads."""
        workload = self.workload
        kind, data = workload.nodes[index]["type"], workload._data(index)
        dtype = workload.dtype(index)
        if kind == "ir.IntImm":
            value = workload._integer(index)
            return _fitting((value, value), dtype)
        if kind == "ir.FloatImm":
            return None
        if kind == "ir.Var":
            return variables.get(index, _range_of(dtype))
        if kind == "ir.TensorLoad":
            return self._load(data, dtype, variables)
        if kind == "ir.Call":
            return self._call(data, dtype, variables)
        if kind == "prim.Select":
            self.expression(data["condition"], variables)
            # Select evaluates both values, regardless of the condition.
            branches = [self.expression(data[f"{name}_value"], variables) for name in _BRANCHES]
            return _union(branches, dtype)
        operands = [
            self.expression(data[name], variables) for name in ("a", "b", "value") if name in data
        ]
        return _computed(kind, operands, dtype)

    def _load(self, data: Mapping[str, Any], dtype: str, variables: Environment) -> Interval | None:
        workload, source = self.workload, data["source"]
        self._access(source, workload._items(data["indices"]), variables)
        if workload._data(workload._buffer(source)["dtype"])["dtype"] != dtype:
            _refuse("workload", "loads an element as another dtype than that of its buffer")
        if source in workload.parameters and source not in workload.stored:
            whole = _range_of(dtype)
            # `worker.make_arrays` draws integer inputs from 0 to below the bound of their role.
            bound = workload.roles[source].bound
            return None if whole is None else (0, min(bound - 1, whole[1]))
        return _range_of(dtype)

    def _call(self, data: Mapping[str, Any], dtype: str, variables: Environment) -> Interval | None:
        workload = self.workload
        name, arguments = workload.nodes[data["op"]]["data"], workload._items(data["args"])
        if name != "prim.if_then_else":
            bounds = [self.expression(argument, variables) for argument in arguments]
            return bounds[0] if name == "prim.likely" else _range_of(dtype)
        condition, if_true, if_false = arguments
        self.expression(condition, variables)
        branches = [
            self.expression(branch, self._refined(condition, variables, is_true=is_true))
            for branch, is_true in ((if_true, True), (if_false, False))
        ]
        return _union(branches, dtype)

    def _refined(self, condition: int, variables: Environment, *, is_true: bool) -> Environment:
        """Return refined intervals of variables where a condition holds, or does not hold."""
        refined = dict(variables)
        for kind, left, right in self._comparisons(condition, is_true=is_true):
            for index, other, comparison in (
                (left, right, kind), (right, left, _MIRRORED[kind]),
            ):  # fmt: skip
                if index not in refined:
                    continue
                low, high = refined[index]
                bound = self.expression(other, variables)
                if bound is None:
                    continue
                if comparison in ("LT", "LE", "EQ"):
                    high = min(high, bound[1] - (comparison == "LT"))
                if comparison in ("GT", "GE", "EQ"):
                    low = max(low, bound[0] + (comparison == "GT"))
                if low <= high:  # otherwise the code is unreachable
                    refined[index] = (low, high)
        return refined

    def _comparisons(self, condition: int, *, is_true: bool) -> Iterator[tuple[str, int, int]]:
        workload = self.workload
        kind = workload.nodes[condition]["type"].rpartition(".")[2]
        data = workload._data(condition)
        if kind == "Not":
            yield from self._comparisons(data["a"], is_true=not is_true)
        elif kind == ("And" if is_true else "Or"):
            yield from self._comparisons(data["a"], is_true=is_true)
            yield from self._comparisons(data["b"], is_true=is_true)
        elif kind in _MIRRORED and (is_true or kind in _OPPOSITES):
            yield (kind if is_true else _OPPOSITES[kind]), data["a"], data["b"]


_BRANCHES = ("true", "false")
_MIRRORED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "EQ": "EQ"}
_OPPOSITES = {"LT": "GE", "LE": "GT", "GT": "LE", "GE": "LT"}


def _lies_in(inner: Interval, outer: Interval) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _range_of(dtype: str) -> Interval | None:
    """Return the smallest and largest integer of a dtype, None for floating-point dtypes.

    >>> _range_of("uint8"), _range_of("float32")
    ((0, 255), None)
    """
    if dtype == "bool":
        return 0, 1
    match = re.fullmatch(r"(u?)int(\d+)", dtype)
    if match is None:
        return None
    bits = int(match[2])
    return (0, 2**bits - 1) if match[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _fitting(interval: Interval, dtype: str) -> Interval | None:
    """Return an interval of a dtype, widened to the full range if the value may overflow."""
    whole = _range_of(dtype)
    return interval if whole is None or _lies_in(interval, whole) else whole


def _union(intervals: Sequence[Interval | None], dtype: str) -> Interval | None:
    known_intervals = [interval for interval in intervals if interval is not None]
    if len(known_intervals) < len(intervals) or not known_intervals:
        return _range_of(dtype)
    return _fitting(
        (min(low for low, _ in known_intervals), max(high for _, high in known_intervals)), dtype
    )


def _computed(kind: str, operands: Sequence[Interval | None], dtype: str) -> Interval | None:
    """Return the interval of an operation on intervals."""
    whole = _range_of(dtype)
    known_operands = [operand for operand in operands if operand is not None]
    if whole is None or len(known_operands) < len(operands):
        return whole
    name = kind.rpartition(".")[2]
    if name == "Cast":
        return _fitting(known_operands[0], dtype)
    if name in ("Min", "Max"):
        choose = min if name == "Min" else max
        return choose(known_operands[0][0], known_operands[1][0]), choose(
            known_operands[0][1], known_operands[1][1]
        )
    if name in ("FloorMod", "Mod") and known_operands[1][0] > 0:
        (low, high), (least, greatest) = known_operands
        if name == "Mod" and low < 0:
            return max(low, 1 - greatest), max(0, min(high, greatest - 1))
        return (low, high) if low >= 0 and high < least else (0, greatest - 1)
    if name in ("FloorDiv", "Div") and known_operands[1][0] > 0:
        quotients = [_divided(name, a, b) for a in known_operands[0] for b in known_operands[1]]
        return min(quotients), max(quotients)
    operation = _ARITHMETIC.get(name)
    if operation is None:
        return whole
    results = [operation(a, b) for a in known_operands[0] for b in known_operands[1]]
    return _fitting((min(results), max(results)), dtype)


def _divided(name: str, a: int, b: int) -> int:
    return a // b if name == "FloorDiv" or a >= 0 else -(-a // b)


_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
}
