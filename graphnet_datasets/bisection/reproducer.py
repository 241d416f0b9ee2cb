"""Tests that reproduce a failure, for people to read and run; this library never runs them.

The source writer prints the graph from a closed operator table. The elements of its inputs are
embedded as base64, or stored in one file beside the test if they are large.
"""

from __future__ import annotations

import base64
import textwrap
import zlib
from collections.abc import Sequence
from typing import Any

from ..benchmark import Settings
from ..benchmark.executors.jobs import CandidateCompiler
from ..compilers import resolve_name
from ..frameworks import print_source
from ..inputs.arrays import make_array
from ..sample import Sample
from ..sample.vocabulary import WEIGHT_ROLES
from ..scores.tolerance import ATOL_RTOL_EXPONENTS, tolerances
from .compiling_text import compiling_text
from .failures import Failure

ELEMENTS_FILE = "elements.bin"
MOST_IN_TEXT = 64 * 1024
"""Maximum compressed size in bytes of elements embedded in the test."""
_SHOWN_DTYPES = ("float64", "float32", "float16", "bfloat16", "complex64", "complex128")


def print_reproducer(
    sample: Sample,
    failure: Failure,
    candidate: CandidateCompiler,
    device: str,
    settings: Settings,
    sample_file: str,
) -> tuple[str, bytes]:
    """Return the source of a test, and the contents of its elements file (may be empty).

    The test of a torch graph requires torch and the compiler. It also requires this library and the
    stored sample for compilers that this module cannot call itself, graphs with custom operators,
    wrong output distributions, and Paddle.
    """
    head = _head(sample, failure, candidate)
    has_wrong_draws = failure.kind == "wrong" and failure.first.p_value is not None
    if sample.framework != "torch" or sample.custom_operators or has_wrong_draws:
        text = _through_library(candidate, failure, device, settings, sample_file)
        return f"{head}{text}{_TAIL}", b""
    places, elements = _lay_out(sample, settings.seed)
    packed = zlib.compress(elements, 9)
    is_beside = len(packed) > MOST_IN_TEXT
    source = print_source(sample)
    imports, graph = _split_imports(source)
    compiling, more = compiling_text(candidate)
    imports |= {"import base64", "import zlib"} if not is_beside else {"from pathlib import Path"}
    imports |= more | _needed(failure)
    weights = [
        name
        for name, graph_input in zip(sample.input_names, sample.inputs, strict=True)
        if graph_input.role in WEIGHT_ROLES and settings.weights == "parameters"
    ]
    parts = [
        head,
        "\n".join(sorted(imports, key=_import_order)),
        f"\n\nSEED = {settings.seed}\nDEVICE = {device!r}\nTHREADS = {settings.threads}\n",
        _elements_text(packed, is_beside),
        f"INPUTS = {_literal(places)}\nWEIGHTS = {_literal(weights)}\n\n\n",
        graph.strip(),
        _binding(sample, weights),
        _CALLING,
        f"\n\n{compiling.strip()}\n",
        _checking(failure),
        _TAIL,
    ]
    return "".join(parts), elements if is_beside else b""


def _head(sample: Sample, failure: Failure, candidate: CandidateCompiler) -> str:
    options = f", options {dict(sorted(candidate.options.items()))}" if candidate.options else ""
    parent = sample.provenance.parent_id or sample.id
    lines = [
        f"Shows that {candidate.compiler} {candidate.version} fails on a part of {parent}:",
        f"{failure}.",
        f"Found by `graphnet bisect`{options}. Run it with `python` or `pytest`.",
    ]
    plain = " ".join(lines).replace("\\", "/").replace('"', "'")
    plain = "".join(character if character.isprintable() else " " for character in plain)
    return f'"""{textwrap.fill(plain, 98)}\n"""\n\n'


def _lay_out(sample: Sample, seed: int) -> tuple[list[tuple[Any, ...]], bytes]:
    """Return each input's name, dtype, shape, stride and offset, or its number; and the bytes."""
    places: list[tuple[Any, ...]] = []
    data = bytearray()
    for index, (name, item) in enumerate(zip(sample.input_names, sample.inputs, strict=True)):
        array = make_array(sample, index, seed)
        if item.role in ("symbol", "scalar"):
            places.append((name, array.item()))
            continue
        stride = item.value.stride and sample.shape_of(
            type(item.value)(item.value.dtype, item.value.stride)
        )
        places.append((name, item.value.dtype, array.shape, stride, len(data)))
        data += array.tobytes()
        data += bytes(-len(data) % 16)
    return places, bytes(data)


def _elements_text(packed: bytes, is_beside: bool) -> str:
    if is_beside:
        return f"ELEMENTS = Path(__file__).with_name({ELEMENTS_FILE!r}).read_bytes()\n"
    lines = textwrap.wrap(base64.b64encode(packed).decode(), 92) or [""]
    body = "\n".join(f'    "{line}"' for line in lines)
    return f"ELEMENTS = zlib.decompress(base64.b64decode(\n{body}\n))\n"


def _literal(items: list[Any]) -> str:
    if not items:
        return "[]"
    return "[\n" + "".join(f"    {item!r},\n" for item in items) + "]"


def _split_imports(source: str) -> tuple[set[str], str]:
    imports, rest = set(), []
    for line in source.splitlines():
        if line.startswith("import "):
            imports.add(line)
        else:
            rest.append(line)
    return imports, "\n".join(rest)


def _import_order(line: str) -> tuple[bool, bool, str]:
    return line.split()[1].split(".")[0] in _OTHERS, line.startswith("from"), line


_OTHERS = frozenset({"torch", "onnxruntime", "openvino", "graphnet_datasets"})


def _needed(failure: Failure) -> set[str]:
    return {"hang": {"import signal"}, "slow": {"import statistics", "import time"}}.get(
        failure.kind, set()
    )


_BINDING = '''


class Bound(torch.nn.Module):
    """The graph with its weights held by the module."""

    def __init__(self, weights):
        super().__init__()
        self.graph = GraphModule()
        for name, tensor in weights.items():
            if tensor.is_floating_point() or tensor.is_complex():
                self.register_parameter(name, torch.nn.Parameter(tensor, requires_grad=False))
            else:
                self.register_buffer(name, tensor)

    def forward(self{arguments}):
        return self.graph({values})
'''
_CALLING = """

def make_inputs():
    made = {}
    for name, *place in INPUTS:
        if len(place) == 1:
            made[name] = place[0]
            continue
        dtype, shape, stride, offset = getattr(torch, place[0]), *place[1:]
        size = torch.Size(shape).numel()
        plain = torch.empty(0, dtype=dtype)
        if size:
            plain = torch.frombuffer(bytearray(ELEMENTS), dtype=dtype, count=size, offset=offset)
        plain = plain.reshape(shape).clone()
        if stride is not None:
            plain = torch.empty_strided(shape, stride, dtype=dtype).copy_(plain)
        made[name] = plain.to(DEVICE)
    return made


def split_inputs():
    made = make_inputs()
    return {name: made.pop(name) for name in WEIGHTS}, made


def call(module, inputs):
    torch.manual_seed(SEED)
    copies = {name: each.clone() if isinstance(each, torch.Tensor) else each
              for name, each in inputs.items()}
    return torch.utils._pytree.tree_leaves(module(**copies))
"""


def _binding(sample: Sample, weights: Sequence[str]) -> str:
    names = sample.input_names
    return _BINDING.format(
        arguments="".join(f", {name}" for name in names if name not in weights),
        values=", ".join(
            f"{name}=self.{name}" if name in weights else f"{name}={name}" for name in names
        ),
    )


_RUNNING = """

def run_both():
    torch.set_num_threads(THREADS)
    weights, inputs = split_inputs()
    with torch.no_grad():
        expected = call(Bound(weights), inputs)
        compiled = compile_module(Bound(weights), inputs)
        return expected, [call(compiled, inputs) for _ in range(3)]


def test_minimal():
{before}    expected, calls = run_both()
    for actual in calls:
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            atol, rtol = TOLERANCES.get(other.dtype, (0.0, 0.0))
            torch.testing.assert_close(one, other, atol=atol, rtol=rtol, equal_nan=True)
"""
_TIMING = """

def time_call(module, inputs):
    started = time.perf_counter()
    call(module, inputs)
    return time.perf_counter() - started


def test_minimal():
    torch.set_num_threads(THREADS)
    weights, inputs = split_inputs()
    with torch.no_grad():
        eager = Bound(weights)
        compiled = compile_module(Bound(weights), inputs)
        for _ in range(5):
            call(eager, inputs), call(compiled, inputs)
        ratios = [time_call(eager, inputs) / time_call(compiled, inputs) for _ in range(50)]
    speedup = statistics.median(ratios)
    assert speedup >= {bound!r}, f"a speedup of {{speedup:.3g}}"
"""


def _checking(failure: Failure) -> str:
    if failure.kind == "slow":
        return _TIMING.format(bound=failure.slower_than)
    before = "    signal.alarm(60)  # it ends by SIGALRM\n" if failure.kind == "hang" else ""
    t = failure.t
    rows = [
        f"    torch.{name}: {tolerances(t, name)!r},\n"
        for name in _SHOWN_DTYPES
        if name in ATOL_RTOL_EXPONENTS
    ]
    table = f"\n\nTOLERANCES = {{\n{''.join(rows)}}}\n" + f'"""atol and rtol at t = {t:g}."""\n'
    return table + _RUNNING.format(before=before)


def _through_library(
    candidate: CandidateCompiler,
    failure: Failure,
    device: str,
    settings: Settings,
    sample_file: str,
) -> str:
    """Return a test that uses this library and reads the sample beside it."""
    asserted = (
        f'assert record["speedup"] >= {failure.slower_than!r}'
        if failure.kind == "slow"
        else f'assert record["min_t"] <= {failure.t!r}'
    )
    trusted = ", trust_remote_code=True" if settings.trust_remote_code else ""
    return f"""from pathlib import Path

from graphnet_datasets import run


def test_minimal():
    path = Path(__file__).with_name({sample_file!r})
    (record,) = run(
        path,
        {resolve_name(candidate.reference)!r},
        {device!r},
        options={dict(candidate.options)!r},
        seed={settings.seed!r},
        weights={settings.weights!r}{trusted},
    )
    assert record["status"] == "ok", record["error_message"]
    {asserted}
"""


_TAIL = '\n\nif __name__ == "__main__":\n    test_minimal()\n    print("It does not fail here.")\n'
