"""Hypothesis strategies shared by the tests: arguments, samples, and samples that run."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from graphnet_datasets.sample import (
    Constraint,
    CustomOperator,
    Input,
    Op,
    Provenance,
    Sample,
    Statistics,
    Symbol,
    Value,
    hash_source,
)
from graphnet_datasets.sample.arguments import (
    INT64_MAX,
    INT64_MIN,
    DictArg,
    ListArg,
    Named,
    Ref,
    SliceArg,
)
from graphnet_datasets.sample.symbols import evaluate
from graphnet_datasets.sample.vocabulary import (
    CALIBRATIONS,
    FRAMEWORKS,
    ITEM_SIZE_BYTES,
    RELATIONS,
    SIGNALS,
    TASKS,
)

TEXT = st.text(max_size=12)
IDENTIFIERS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,11}", fullmatch=True)
IDS = st.from_regex(
    r"[A-Za-z0-9_][A-Za-z0-9_.+=@-]{0,8}(/[A-Za-z0-9_][a-z0-9.-]{0,8}){0,2}", fullmatch=True
)
DTYPES = st.sampled_from(sorted(ITEM_SIZE_BYTES))
FLOATS = st.floats(allow_nan=False)
"""NaN is left out because it makes equal samples unequal; tests of NaN name it."""

NAMED = {
    "torch": (
        Named("dtype", "float32"),
        Named("dtype", "bfloat16"),
        Named("dtype", "int64"),
        Named("dtype", "bool"),
        Named("device", "cpu"),
        Named("device", "cuda:0"),
        Named("layout", "strided"),
        Named("memory_format", "channels_last"),
    ),
    "paddle": (Named("dtype", "float32"), Named("dtype", "int64"), Named("place", "cpu")),
}

FUNCTIONS = {
    "torch": ("torch.add", "torch.cat", "torch.conv2d", "torch.nn.functional.gelu", "torch.matmul"),
    "paddle": ("paddle._C_ops.add", "paddle._C_ops.concat", "paddle._C_ops.matmul"),
}
METHODS = {
    "torch": ("torch.Tensor.view", "torch.Tensor.transpose", "torch.Tensor.sum"),
    "paddle": (),
}
ATTRIBUTES = {"torch": ("torch.Tensor.real", "torch.Tensor.T"), "paddle": ()}
UNARY = ("operator.neg", "operator.invert")
BINARY = (
    "operator.add",
    "operator.sub",
    "operator.mul",
    "operator.truediv",
    "operator.pow",
    "operator.lt",
    "operator.eq",
    "operator.getitem",
)
KEYWORDS = ("dim", "keepdim", "alpha", "out_dtype", "bias", "other")


def refs(num_values: int) -> st.SearchStrategy[Ref]:
    """Draw a reference to one of the first `num_values` values (there must be one)."""
    return st.integers(0, num_values - 1).map(Ref)


def args(num_values: int, framework: str = "torch") -> st.SearchStrategy[Any]:
    """Draw any argument that may use the first `num_values` values."""
    leaves: st.SearchStrategy[Any] = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(INT64_MIN, INT64_MAX),
        st.integers(-8, 8),
        FLOATS,
        st.complex_numbers(allow_nan=False),
        TEXT,
        st.just(...),
        st.sampled_from(NAMED[framework]),
    )
    integers = st.none() | st.integers(-9, 9)
    if num_values:
        leaves |= refs(num_values)
        integers |= refs(num_values)
    leaves |= st.builds(SliceArg, integers, integers, integers)
    return st.recursive(
        leaves,
        lambda children: (
            st.lists(children, max_size=3).map(tuple)
            | st.lists(children, max_size=3).map(lambda items: ListArg(tuple(items)))
            | st.lists(st.tuples(TEXT, children), max_size=2, unique_by=lambda pair: pair[0]).map(
                lambda items: DictArg(tuple(items))
            )
        ),
        max_leaves=6,
    )


def dims(symbol_names: tuple[str, ...]) -> st.SearchStrategy[Any]:
    """Draw a small dimension: an integer, or an expression that is positive for sizes above 0."""
    sizes: st.SearchStrategy[Any] = st.integers(0, 3)
    if symbol_names:
        names = st.sampled_from(symbol_names)
        sizes |= names | st.builds("{}*{} + {}".format, st.integers(1, 3), names, names)
        sizes |= names.map("({} - 1)//2 + 1".format)
    return sizes


def values(symbol_names: tuple[str, ...] = ()) -> st.SearchStrategy[Value]:
    """Draw what may be known of a value, from nothing to dtype, shape and stride."""
    shapes = st.none() | st.lists(dims(symbol_names), max_size=4).map(tuple)
    return st.builds(Value, st.none() | DTYPES, shapes, shapes)


CALIBRATED = st.builds(Statistics, FLOATS, st.none() | FLOATS, st.none() | FLOATS)
STATISTICS = st.builds(
    Statistics,
    st.none() | FLOATS,
    st.none() | FLOATS,
    st.none() | FLOATS,
    st.none() | FLOATS,
    st.booleans(),
)

PROVENANCES = st.builds(
    Provenance,
    source=TEXT,
    model_name=TEXT,
    is_model_name_certain=st.booleans(),
    license=TEXT,
    tags=st.lists(TEXT, max_size=3).map(tuple),
    capture=TEXT,
    framework_version=TEXT,
    library_version=TEXT,
    mode=st.sampled_from(["", "eval", "train"]),
    parent_id=TEXT,
    parent_ops=st.lists(st.integers(0, 2**20), max_size=3).map(tuple),
    num_occurrences=st.integers(1, 2**40),
    graph_index=st.integers(0, 3),
    graph_count=st.integers(1, 4),
    break_reason=TEXT,
    source_hash=TEXT,
    faults=st.lists(TEXT, max_size=2).map(tuple),
    metadata=st.sampled_from(["{}", '{"dynamic": false}', '{"a": [1, {"b": null}]}']),
)


@st.composite
def inputs(draw: st.DrawFn, symbols: tuple[Symbol, ...] = ()) -> Input:
    """Draw one input of any role that the symbols allow."""
    names = tuple(symbol.name for symbol in symbols)
    roles = ["input", "parameter", "buffer", "constant", "scalar"] + ["symbol"] * bool(names)
    role: Any = draw(st.sampled_from(roles))
    if role == "symbol":
        return Input(role, Value(), draw(st.sampled_from(names)))
    if role == "scalar":
        dtype = draw(st.sampled_from(["int64", "float64", "bool"]))
        size = ITEM_SIZE_BYTES[dtype]
        data = draw(st.binary(min_size=size, max_size=size)) if size > 1 else b"\x01"
        return Input(role, Value(dtype, ()), draw(TEXT), data=data)
    dtype = draw(DTYPES)
    shape = tuple(draw(st.lists(dims(names), max_size=3)))
    hints = {symbol.name: symbol.hint for symbol in symbols}
    num_bytes = math.prod(evaluate(dim, hints) for dim in shape) * ITEM_SIZE_BYTES[dtype]
    data = None
    if num_bytes <= 64 and draw(st.booleans()):
        data = draw(st.binary(min_size=num_bytes, max_size=num_bytes))
    return Input(
        role,
        Value(dtype, shape),
        draw(TEXT | IDENTIFIERS),
        draw(st.sampled_from(["cpu", "cuda:0"])),
        draw(st.none() | STATISTICS),
        data,
        draw(st.none() | CALIBRATED),
        draw(st.sampled_from(SIGNALS)) if role == "input" else "",  # pyright: ignore[reportArgumentType]
    )


@st.composite
def ops(
    draw: st.DrawFn,
    num_values: int,
    symbol_names: tuple[str, ...] = (),
    framework: str = "torch",
) -> Op:
    """Draw one operator whose arguments use the first `num_values` values."""
    kinds = ["function"]
    if num_values:
        kinds += ["operator"] + (["method", "attribute"] if METHODS[framework] else [])
    kind = draw(st.sampled_from(kinds))
    any_arg = args(num_values, framework)
    arguments: tuple[Any, ...]
    keywords: list[tuple[str, Any]] = []
    if kind == "operator":
        target = draw(st.sampled_from(UNARY + BINARY))
        arguments = (draw(refs(num_values)),)
        if target in BINARY:
            arguments += (draw(any_arg),)
    elif kind == "attribute":
        target = draw(st.sampled_from(ATTRIBUTES[framework]))
        arguments = (draw(refs(num_values)),)
    else:
        pool = METHODS if kind == "method" else FUNCTIONS
        target = draw(st.sampled_from(pool[framework]))
        arguments = tuple(draw(st.lists(any_arg, max_size=3)))
        if kind == "method":
            arguments = (draw(refs(num_values)), *arguments)
        names = draw(st.lists(st.sampled_from(KEYWORDS), max_size=2, unique=True))
        keywords = [(name, draw(any_arg)) for name in names]
    results = draw(st.none() | st.lists(values(symbol_names), max_size=2).map(tuple))
    return Op(target, arguments, tuple(keywords), results, draw(st.sampled_from(["", "a.0.b"])))


@st.composite
def custom_operators(draw: st.DrawFn) -> CustomOperator:
    """Draw an operator with source that means nothing, its hash right or wrong."""
    source = draw(TEXT)
    wrong = hash_source(f"another {source}")
    name = draw(st.sampled_from(["mylib::scale", "mylib::shift", "other::scale"]))
    return CustomOperator(
        name, draw(TEXT), source, draw(st.sampled_from([hash_source(source), wrong]))
    )


@st.composite
def samples(draw: st.DrawFn, framework: str | None = None, max_ops: int = 6) -> Sample:
    """Draw a sample that meets every invariant and uses every field; most would not run.

    The targets are real operators, called with the number of arguments that their syntax needs,
    so that each sample can also be printed as source.
    """
    chosen: Any = framework or draw(st.sampled_from(FRAMEWORKS))
    names = draw(st.lists(st.sampled_from(["s0", "s1", "S2", "u0"]), max_size=3, unique=True))
    bounds = st.none() | st.integers(0, INT64_MAX)
    symbols = tuple(
        Symbol(name, draw(st.integers(1, 4)), draw(bounds), draw(bounds)) for name in names
    )
    constraints: tuple[Constraint, ...] = ()
    if names:
        sides = st.sampled_from([*names, "2", f"{names[0]} + 1", f"Mod({names[-1]}, 2)"])
        relations: Any = st.sampled_from(RELATIONS)
        constraints = tuple(
            draw(st.lists(st.builds(Constraint, sides, relations, sides), max_size=2))
        )
    all_inputs = tuple(draw(st.lists(inputs(symbols), max_size=4)))
    all_ops: list[Op] = []
    for index in range(draw(st.integers(0, max_ops))):
        all_ops.append(draw(ops(len(all_inputs) + index, tuple(names), chosen)))
    task: Any = draw(st.sampled_from(TASKS))
    return Sample(
        id=draw(IDS),
        framework=chosen,
        task=task,
        inputs=all_inputs,
        ops=tuple(all_ops),
        outputs=draw(args(len(all_inputs) + len(all_ops), chosen)),
        symbols=symbols,
        constraints=constraints,
        kind=draw(st.sampled_from(["graph", "subgraph", "backward"])),
        provenance=draw(PROVENANCES),
        custom_operators=tuple(
            draw(st.lists(custom_operators(), max_size=2, unique_by=lambda each: each.name))
        ),
        calibration=draw(st.sampled_from(CALIBRATIONS)),  # pyright: ignore[reportArgumentType]
    )


ELEMENTWISE = (
    "torch.relu",
    "torch.tanh",
    "torch.nn.functional.silu",
    "torch.Tensor.abs",
    "torch.Tensor.clone",
    "operator.neg",
)
PAIRWISE = ("torch.add", "torch.maximum", "operator.mul", "operator.sub", "torch.Tensor.mul")


@st.composite
def runnable_samples(draw: st.DrawFn, max_ops: int = 8) -> Sample:
    """Draw a torch sample that runs: elementwise operators over float32 tensors of one shape.

    It may hold in-place operators, tuples taken apart, unused values and nested outputs.
    """
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=2, max_size=3)))
    value = Value("float32", shape)
    roles: Any = st.sampled_from(["input", "parameter", "buffer"])
    all_inputs = tuple(
        Input(role, value, f"x{index}", statistics=Statistics(0.0, 1.0))
        for index, role in enumerate(draw(st.lists(roles, min_size=1, max_size=3)))
    )
    usable = list(range(len(all_inputs)))
    all_ops: list[Op] = []

    def append(target: str, *arguments: Any, **keywords: Any) -> int:
        all_ops.append(Op(target, arguments, tuple(keywords.items())))
        return len(all_inputs) + len(all_ops) - 1

    for _ in range(draw(st.integers(1, max_ops))):
        pick = st.sampled_from(usable).map(Ref)
        kind = draw(st.sampled_from(["elementwise", "pairwise", "inplace", "chunk", "getitem"]))
        if kind == "elementwise":
            usable.append(append(draw(st.sampled_from(ELEMENTWISE)), draw(pick)))
        elif kind == "pairwise":
            usable.append(append(draw(st.sampled_from(PAIRWISE)), draw(pick), draw(pick)))
        elif kind == "inplace":
            # A clone first: an in-place operator on a parameter would change the caller's tensor.
            copy = Ref(append("torch.Tensor.clone", draw(pick)))
            usable.append(append("operator.iadd", copy, draw(pick | st.floats(-2, 2, width=32))))
        elif kind == "chunk":
            pair = Ref(append("torch.stack", ListArg((draw(pick), draw(pick))), dim=0))
            parts = Ref(append("torch.Tensor.unbind", pair, 0))
            usable.append(append("operator.getitem", parts, draw(st.integers(0, 1))))
        else:
            index = (..., SliceArg(None, None, None))
            usable.append(append("operator.getitem", draw(pick), index))
    results = draw(st.lists(st.sampled_from(usable).map(Ref), min_size=1, max_size=3))
    outputs: Any = draw(st.sampled_from([tuple(results), results[0], ListArg((tuple(results),))]))
    return Sample(
        id="generated/elementwise",
        framework="torch",
        task="other",
        inputs=all_inputs,
        ops=tuple(all_ops),
        outputs=outputs,
    )
