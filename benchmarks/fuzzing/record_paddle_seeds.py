"""Write calls of paddle's operators, from which the fuzzer starts: paddle_seeds.jsonl.gz.

    python -m fuzzing.record_paddle_seeds [DIRECTORY OF GRAPHNET SAMPLES]     (inside benchmarks/)

Valid ones come out of the tests of the translation from torch and out of graphs, made small. For
the other operators the types of the arguments are found by asking: paddle says of each argument
which type it must have.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import signal
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import paddle

from graphnet_datasets import make_inputs, read_directory
from graphnet_datasets.frameworks.paddle.operators import CORE, OPERATORS, lookup, resolve
from graphnet_datasets.frameworks.paddle.plan import Plan
from graphnet_datasets.frameworks.paddle.signatures import _kinds, argument_names
from graphnet_datasets.transforms.translate import translate

from .paddle_values import describe_call
from .specs import Call, Named, Tensor, write_call
from .torch_values import NotPlainError

SEEDS = Path(__file__).with_name("paddle_seeds.jsonl.gz")
CALLS_PER_NAME = 8
Found = dict[str, dict[str, Call]]


def main() -> None:
    """Record and write."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.transforms.translate.cases import CASES

    found: Found = defaultdict(dict)
    for case in CASES:
        with contextlib.suppress(Exception):
            _record(translate(case.sample()), found)
    for directory in sys.argv[1:]:
        for path in sorted({each.parent for each in Path(directory).rglob("graph_net.json")}):
            with contextlib.suppress(Exception):
                for sample in read_directory(path):
                    if sample.framework == "paddle" and sample.input_bytes < 50_000_000:
                        _record(sample, found)
    print(len(found), "operators from graphs", flush=True)
    for name in sorted(OPERATORS):
        if name.startswith(CORE) and not found[name]:
            call = _in_a_child(name)
            if call is not None:
                found[name][repr(call)] = call
    with gzip.open(SEEDS, "wt", compresslevel=9) as file:
        for name in sorted(found):
            for call in found[name].values():
                file.write(write_call(call) + "\n")
    print(sum(map(bool, found.values())), "operators", SEEDS.stat().st_size, "bytes")


def _record(sample: Any, found: Found) -> None:
    plan = Plan(sample)
    inputs = list(make_inputs(sample).values())
    slots = [*inputs, *plan.template[plan.num_inputs :]]
    with paddle.no_grad():
        for call, arguments, own, _ in plan.steps:
            given = arguments(slots)
            position = own - plan.num_inputs
            if 0 <= position < sample.num_ops:
                name = lookup(sample.ops[position].target).name
                with contextlib.suppress(NotPlainError):
                    made = describe_call(name, given)
                    if len(found[name]) < CALLS_PER_NAME:
                        found[name].setdefault(repr(made), made)
            slots[own] = call(*given)


_BY_NAME: dict[str, Any] = {
    "data_format": "NCHW", "data_layout": "NCHW", "padding_algorithm": "EXPLICIT",
    "mode": "constant",
    "pooling_type": "max",
    "interp_method": "bilinear", "reduction": "mean", "UPLO": "L",
    "strides": [1, 1], "paddings": [0, 0], "dilations": [1, 1], "kernel_size": [2, 2],
    "axis": 0, "epsilon": 1e-5, "equation": "ij,jk->ik", "groups": 1, "group": 1,
}  # fmt: skip
_MATRIX = Tensor("float32", (3, 4))
_IMAGE = Tensor("float32", (2, 3, 6, 6))
_INDEX = Tensor("int64", (3,), "small")
_BY_TYPE = (
    ("Place", Named("place", "cpu")), ("DataType", Named("dtype", "float32")),
    ("DataType", Named("dtype", "float32")), ("dtype", Named("dtype", "float32")),
    ("bool", False), ("list of int", [1, 1]), ("list of float", [0.5]), ("list of bool", [True]),
    ("list or tuple", [1, 1]), ("list", [1, 1]), ("int", 1), ("float", 0.5), ("str", "none"),
)  # fmt: skip


def _guess(name: str) -> Call | None:
    """Return a call whose arguments have the types that paddle wants, accepted if possible."""
    short = name.removeprefix(CORE)
    names = argument_names(short)
    kinds = _kinds().get(short, {})
    best = None
    for operand in (_MATRIX, _IMAGE, _INDEX):
        args: list[Any] = []
        for each in names:
            kind = kinds.get(each, "tensor" if each in ("x", "y", "input", "filter") else "")
            if kind == "tensor":
                args.append(_INDEX if "index" in each or "indices" in each else operand)
            elif kind == "list":
                args.append([operand, operand])
            else:
                args.append(_BY_NAME.get(each, 1))
        for _ in range(60):
            call = Call(name, tuple(args))
            problem = _try(call)
            if problem is None:
                return call
            place = re.search(r"argument \(position (\d+)\) must be ([^,]*),? .*but got", problem)
            if place is None or int(place[1]) >= len(args):
                best = best or call
                break
            wanted = place[2]
            value = next((value for sign, value in _BY_TYPE if sign in wanted), 1)
            if args[int(place[1])] == value:
                break
            args[int(place[1])] = value
    return best


def _try(call: Call) -> str | None:
    import random

    from .paddle_values import make

    chance = random.Random(0)  # noqa: S311 - no secret
    try:
        resolve(lookup(call.name))(*(make(arg, chance) for arg in call.args))
    except Exception as error:
        return str(error)
    return None


def _in_a_child(name: str) -> Call | None:
    """Guess a call in a separate process, since some guesses crash it."""
    from .specs import read_call

    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        try:
            with contextlib.suppress(Exception):
                call = _guess(name)
                if call is not None:
                    os.write(write, write_call(call).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        text = file.read()
    os.waitpid(pid, 0)
    return read_call(text) if text else None


if __name__ == "__main__":
    main()
