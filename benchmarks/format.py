"""Four ways to hold operator arguments in columns, measured on real graphs.

    python benchmarks/format.py [DIRECTORY OR ARCHIVE OF GRAPHNET SAMPLES]

Each way holds targets, arguments and keyword arguments of every operator, one row a graph, zstd
Parquet in row groups of 100. Prints one JSON object per way: bytes of the file, and milliseconds
per graph to encode (operators to a Python row) and to decode (the row that `to_pylist` gives, back
to operators), median, 95th percentile and that of the largest graph. All ways are measured in one
run and checked to give the same operators back.
"""

from __future__ import annotations

import io
import json
import statistics
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from graphnet_datasets import Sample, read_directory
from graphnet_datasets.sample.arguments import Arg, DictArg, ListArg, Named, Ref, SliceArg
from graphnet_datasets.schema.templates import (
    decode_args,
    decode_kwargs,
    encode_args,
    encode_kwargs,
)

ARCHIVE = Path(__file__).parents[2] / "shared/data/graphnet-upstream-subset.tar.xz"
REPEATS = 3

Call = tuple[str, tuple[Arg, ...], tuple[tuple[str, Arg], ...]]


class Way(NamedTuple):
    """A way to hold the calls of a graph: its columns, and the functions there and back."""

    columns: pa.Schema
    encode: Callable[[list[Call]], dict[str, Any]]
    decode: Callable[[dict[str, Any]], list[Call]]


# Templates with holes, and the operands as integers: the format of the library.


def encode_templates(calls: list[Call]) -> dict[str, Any]:
    rows = []
    for target, args, kwargs in calls:
        operands: list[int] = []
        row = {"target": target, "operands": operands}
        row["args"] = encode_args(args, operands)
        row["kwargs"] = encode_kwargs(kwargs, operands)
        rows.append(row)
    return {"ops": rows}


def decode_templates(row: dict[str, Any]) -> list[Call]:
    calls = []
    for op in row["ops"]:
        operands = iter(op["operands"])
        calls.append(
            (op["target"], decode_args(op["args"], operands), decode_kwargs(op["kwargs"], operands))
        )
    return calls


# The same with operands as distances back from the operator that uses them.


def encode_distances(calls: list[Call]) -> dict[str, Any]:
    row = encode_templates(calls)
    for own, op in enumerate(row["ops"]):
        op["operands"] = [own - index for index in op["operands"]]
    return row


def decode_distances(row: dict[str, Any]) -> list[Call]:
    ops = [
        {**op, "operands": [own - distance for distance in op["operands"]]}
        for own, op in enumerate(row["ops"])
    ]
    return decode_templates({"ops": ops})


# One JSON text per call, references inside.


def to_plain(arg: Any) -> Any:
    if isinstance(arg, Ref):
        return {"ref": arg.index}
    if isinstance(arg, float) and (arg != arg or arg in (float("inf"), float("-inf"))):
        return {"float": str(arg)}
    if arg is None or isinstance(arg, bool | int | float | str):
        return arg
    if isinstance(arg, tuple):
        return {"tuple": [to_plain(item) for item in arg]}
    if isinstance(arg, ListArg):
        return [to_plain(item) for item in arg.items]
    if isinstance(arg, Named):
        return {arg.kind: arg.name}
    if isinstance(arg, SliceArg):
        return {"slice": [to_plain(part) for part in (arg.start, arg.stop, arg.step)]}
    if isinstance(arg, DictArg):
        return {"dict": [[key, to_plain(item)] for key, item in arg.items]}
    if isinstance(arg, complex):
        return {"complex": [to_plain(arg.real), to_plain(arg.imag)]}
    return {"ellipsis": True}


def from_plain(tree: Any) -> Any:
    if isinstance(tree, list):
        return ListArg(tuple([from_plain(item) for item in tree]))
    if not isinstance(tree, dict):
        return tree
    ((tag, body),) = tree.items()
    if tag == "ref":
        return Ref(body)
    if tag == "tuple":
        return tuple([from_plain(item) for item in body])
    if tag == "slice":
        return SliceArg(*[from_plain(part) for part in body])
    if tag == "float":
        return float(body)
    if tag == "dict":
        return DictArg(tuple([(key, from_plain(item)) for key, item in body]))
    if tag == "complex":
        return complex(*[from_plain(part) for part in body])
    return ... if tag == "ellipsis" else Named(tag, body)


TO_JSON = json.JSONEncoder(separators=(",", ":")).encode


def encode_json(calls: list[Call]) -> dict[str, Any]:
    return {
        "ops": [
            {
                "target": target,
                "args": TO_JSON([to_plain(arg) for arg in args]),
                "kwargs": TO_JSON({key: to_plain(arg) for key, arg in kwargs}) if kwargs else "{}",
            }
            for target, args, kwargs in calls
        ]
    }


def decode_json(row: dict[str, Any]) -> list[Call]:
    return [
        (
            op["target"],
            tuple([from_plain(item) for item in json.loads(op["args"])]),
            tuple([(key, from_plain(item)) for key, item in json.loads(op["kwargs"]).items()]),
        )
        for op in row["ops"]
    ]


# Flat preorder: one list of kinds per graph, payloads in lists of their own. A reference is held as
# the distance back from the operator that uses it, which repeats from layer to layer.

NONE, FALSE, TRUE, ELLIPSIS, INT, REF, FLOAT, COMPLEX, TEXT, NAMED, TUPLE, LIST, DICT, SLICE = (
    range(14)
)


class Tokens(NamedTuple):
    kinds: list[int]
    ints: list[int]
    floats: list[float]
    texts: list[str]


def push(arg: Any, own: int, tokens: Tokens) -> None:
    kinds, ints, floats, texts = tokens
    kind = type(arg)
    children: Any = ()
    if kind is Ref:
        kinds.append(REF)
        ints.append(own - arg.index)
    elif kind is bool:
        kinds.append(TRUE if arg else FALSE)
    elif kind is int:
        kinds.append(INT)
        ints.append(arg)
    elif arg is None:
        kinds.append(NONE)
    elif kind is float:
        kinds.append(FLOAT)
        floats.append(arg)
    elif kind is str:
        kinds.append(TEXT)
        texts.append(arg)
    elif kind is Named:
        kinds.append(NAMED)
        texts += (arg.kind, arg.name)
    elif kind is complex:
        kinds.append(COMPLEX)
        floats += (arg.real, arg.imag)
    elif kind is SliceArg:
        kinds.append(SLICE)
        children = (arg.start, arg.stop, arg.step)
    elif kind is DictArg:
        kinds.append(DICT)
        ints.append(len(arg.items))
        texts += (key for key, _ in arg.items)
        children = [item for _, item in arg.items]
    elif kind in (tuple, ListArg):
        kinds.append(TUPLE if kind is tuple else LIST)
        children = arg if kind is tuple else arg.items
        ints.append(len(children))
    else:
        kinds.append(ELLIPSIS)
    for child in children:
        push(child, own, tokens)


def encode_tokens(calls: list[Call]) -> dict[str, Any]:
    tokens = Tokens([], [], [], [])
    for own, (_, args, kwargs) in enumerate(calls):
        push(args, own, tokens)
        push(DictArg(kwargs), own, tokens)
    return {"targets": [target for target, _, _ in calls], **tokens._asdict()}


def pop(own: int, kinds: Iterator[int], pools: tuple[Iterator[Any], ...]) -> Any:
    ints, floats, texts = pools
    kind = next(kinds)
    if kind == REF:
        return Ref(own - next(ints))
    if kind == INT:
        return next(ints)
    if kind == TUPLE:
        return tuple([pop(own, kinds, pools) for _ in range(next(ints))])
    if kind == NONE:
        return None
    if kind in (FALSE, TRUE):
        return kind == TRUE
    if kind == LIST:
        return ListArg(tuple([pop(own, kinds, pools) for _ in range(next(ints))]))
    if kind == FLOAT:
        return next(floats)
    if kind == SLICE:
        return SliceArg(*[pop(own, kinds, pools) for _ in range(3)])
    if kind == TEXT:
        return next(texts)
    if kind == NAMED:
        return Named(next(texts), next(texts))
    if kind == DICT:
        keys = [next(texts) for _ in range(next(ints))]
        return DictArg(tuple([(key, pop(own, kinds, pools)) for key in keys]))
    return complex(next(floats), next(floats)) if kind == COMPLEX else ...


def decode_tokens(row: dict[str, Any]) -> list[Call]:
    kinds = iter(row["kinds"])
    pools = (iter(row["ints"]), iter(row["floats"]), iter(row["texts"]))
    return [
        (target, pop(own, kinds, pools), pop(own, kinds, pools).items)
        for own, target in enumerate(row["targets"])
    ]


def table_of(*fields: tuple[str, pa.DataType]) -> pa.Schema:
    return pa.schema([("ops", pa.list_(pa.struct([("target", pa.string()), *fields])))])


WAYS = {
    "templates": Way(
        table_of(
            ("operands", pa.list_(pa.int32())), ("args", pa.string()), ("kwargs", pa.string())
        ),
        encode_templates,
        decode_templates,
    ),
    "templates, distances": Way(
        table_of(
            ("operands", pa.list_(pa.int32())), ("args", pa.string()), ("kwargs", pa.string())
        ),
        encode_distances,
        decode_distances,
    ),
    "json": Way(table_of(("args", pa.string()), ("kwargs", pa.string())), encode_json, decode_json),
    "tokens": Way(
        pa.schema(
            [
                ("targets", pa.list_(pa.string())),
                ("kinds", pa.list_(pa.int8())),
                ("ints", pa.list_(pa.int64())),
                ("floats", pa.list_(pa.float64())),
                ("texts", pa.list_(pa.string())),
            ]
        ),
        encode_tokens,
        decode_tokens,
    ),
}


def read_samples(path: Path) -> list[Sample]:
    """Return the torch samples under a directory or in an archive of GraphNet directories."""
    with tempfile.TemporaryDirectory() as unpacked:
        root = path
        if path.is_file():
            root = Path(unpacked)
            with tarfile.open(path) as archive:
                archive.extractall(root, filter="data")
        directories = sorted(found.parent for found in root.rglob("graph_net.json"))
        samples = [sample for each in directories for sample in read_directory(each)]
    return [sample for sample in samples if sample.framework == "torch"]


def time_ms(function: Callable[[Any], Any], argument: Any) -> tuple[float, Any]:
    """Return the shortest of a few times, and the result."""
    best, result = float("inf"), None
    for _ in range(REPEATS):
        start = time.perf_counter_ns()
        result = function(argument)
        best = min(best, time.perf_counter_ns() - start)
    return best / 1e6, result


def summary(times: list[float], largest: int) -> dict[str, float]:
    return {
        "median": round(statistics.median(times), 3),
        "p95": round(statistics.quantiles(times, n=20)[-1], 3),
        "largest_graph": round(times[largest], 3),
    }


def main() -> None:
    samples = read_samples(Path(sys.argv[1]) if len(sys.argv) > 1 else ARCHIVE)
    graphs = [[(op.target, op.args, op.kwargs) for op in sample.ops] for sample in samples]
    sizes = [len(calls) for calls in graphs]
    largest = sizes.index(max(sizes))
    for name, way in WAYS.items():
        encoded = [time_ms(way.encode, calls) for calls in graphs]
        table = pa.Table.from_pylist([row for _, row in encoded], way.columns)
        file = io.BytesIO()
        pq.write_table(table, file, compression="zstd", row_group_size=100)
        decoded = [time_ms(way.decode, row) for row in table.to_pylist()]
        assert [calls for _, calls in decoded] == graphs, f"`{name}` changes the graphs"  # noqa: S101
        print(
            json.dumps(
                {
                    "way": name,
                    "graphs": len(graphs),
                    "ops": sum(sizes),
                    "largest_graph_ops": max(sizes),
                    "bytes_zstd": len(file.getvalue()),
                    "encode_ms": summary([ms for ms, _ in encoded], largest),
                    "decode_ms": summary([ms for ms, _ in decoded], largest),
                }
            )
        )


if __name__ == "__main__":
    main()
