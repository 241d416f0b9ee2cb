"""Problems as definitions and workloads of flashinfer-bench and SOL-ExecBench.

A definition has one dtype per tensor and one program, so a problem becomes a definition for each
combination of dtypes and numeric arguments. The formats follow the package `flashinfer-bench`
0.1.2, whose `TraceSet.from_path` reads the directory, and SOL-ExecBench 1.0.2, which reads a folder
per definition and has tolerances.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..analysis.attributes import attributes_of
from ..atomic import write_text
from ..benchmark.problems import Problem
from ..errors import SampleError
from ..frameworks import print_source
from ..sample import Sample
from ..sample.arguments import Ref, iterate_leaves
from ..scores.tolerance import tolerances

FORMATS = ("flashinfer-bench", "sol-execbench")
DTYPES = frozenset(
    {
        *("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"),
        *("int64", "int32", "int16", "int8", "bool"),
    }
)
"""Dtypes of definitions, which have the same names in this library."""


@dataclasses.dataclass(frozen=True)
class Exported:
    """Definitions with their workloads, and reasons for workloads that cannot be expressed.

    `tolerances_t` are the tolerances of the workloads by their `uuid`.
    """

    definitions: Sequence[Mapping[str, Any]]
    workloads: Sequence[Mapping[str, Any]]
    left_out: Mapping[str, str]
    tolerances_t: Mapping[str, float]


def export_problem(problem: Problem) -> Exported:
    """Return the definitions and workloads of a problem, as JSON-compatible data.

    Sizes that are equal in all workloads are constant axes. A workload cannot be expressed if it
    has symbols, numbers, strided inputs, integer tensors (whose values matter), other dtypes, or
    outputs of unknown size.
    """
    groups: dict[str, list[tuple[Sample, str]]] = {}
    left_out: dict[str, str] = {}
    for workload, part in zip(problem.workloads, problem.parts, strict=True):
        sample = Sample.from_row(part)
        try:
            _check(sample)
        except SampleError as error:
            left_out[workload["part_id"]] = str(error)
            continue
        dtypes = [item.value.dtype for item in sample.inputs]
        key = json.dumps([dtypes, list(attributes_of(sample).items())])
        groups.setdefault(key, []).append((sample, workload["subgraph_hash"]))
    definitions, workloads = [], []
    for number, members in enumerate(groups.values()):
        name = f"{problem.id.replace('-', '_')}_{number}"
        samples = [sample for sample, _ in members]
        try:
            definition, axes = _define(name, problem, samples)
        except SampleError as error:
            left_out |= {sample.id: str(error) for sample in samples}
            continue
        definitions.append(definition)
        workloads += [
            {
                "definition": name,
                "workload": {
                    "axes": {
                        axis: sizes[place]
                        for axis, sizes in axes.items()
                        if definition["axes"][axis]["type"] == "var"
                    },
                    "inputs": {tensor: {"type": "random"} for tensor in definition["inputs"]},
                    "uuid": identity,
                },
            }
            for place, (_, identity) in enumerate(members)
        ]
    tolerances_t = {item["subgraph_hash"]: item["tolerance_t"] for item in problem.workloads}
    return Exported(definitions, workloads, left_out, tolerances_t)


def write_exported(
    exported: Exported, directory: Path, form: str = "flashinfer-bench"
) -> list[Path]:
    """Write definitions and workloads in one of `FORMATS`, and return the files."""
    paths = []
    for definition in exported.definitions:
        kind, name = definition["op_type"], definition["name"]
        items = [item for item in exported.workloads if item["definition"] == name]
        if form == "sol-execbench":
            path = directory / name / "definition.json"
            lines_path = path.with_name("workload.jsonl")
            items = [_with_tolerance(item["workload"], definition, exported) for item in items]
            definition = {key: value for key, value in definition.items() if key != "tags"}
        else:
            path = directory / "definitions" / kind / f"{name}.json"
            lines_path = directory / "workloads" / kind / f"{name}.jsonl"
        lines = "\n".join(json.dumps(item) for item in items)
        for file, text in ((path, json.dumps(definition, indent=2)), (lines_path, lines)):
            file.parent.mkdir(parents=True, exist_ok=True)
            write_text(file, text + "\n")
            paths.append(file)
    return paths


def _with_tolerance(
    workload: Mapping[str, Any], definition: Mapping[str, Any], exported: Exported
) -> dict[str, Any]:
    """Return a workload with absolute and relative tolerances, the loosest of its outputs."""
    dtypes = {output["dtype"] for output in definition["outputs"].values()}
    pairs = [tolerances(exported.tolerances_t[workload["uuid"]], dtype) for dtype in dtypes]
    return {
        **workload,
        "tolerance": {
            "max_atol": max(atol for atol, _ in pairs),
            "max_rtol": max(rtol for _, rtol in pairs),
            "required_matched_ratio": 1.0,
        },
    }


def _check(sample: Sample) -> None:
    """Raise an error if the inputs of a sample cannot be expressed."""
    for name, item in zip(sample.input_names, sample.inputs, strict=True):
        dtype = item.value.dtype or "unknown"
        if item.role in ("symbol", "scalar") or sample.symbols:
            raise SampleError(f"The input `{name}` has symbolic sizes or is a number.")
        if dtype not in DTYPES:
            raise SampleError(f"The input `{name}` has the dtype {dtype}.")
        if "int" in dtype:
            raise SampleError(f"The input `{name}` has integers, whose values matter.")
        if item.value.stride is not None:
            raise SampleError(f"The input `{name}` has strides of its own.")


def _define(
    name: str, problem: Problem, samples: Sequence[Sample]
) -> tuple[dict[str, Any], dict[str, tuple[int, ...]]]:
    """Return a definition, and the size of each axis in each sample."""
    axes: dict[str, tuple[int, ...]] = {}
    inputs = {
        tensor: _specify(
            axes, [sample.inputs[place].value for sample in samples], can_add_variable=True
        )
        for place, tensor in enumerate(samples[0].input_names)
    }
    results = [_results(sample) for sample in samples]
    outputs = {
        f"output_{place}": _specify(axes, [row[place] for row in results], can_add_variable=False)
        for place in range(len(results[0]))
    }
    arguments = ", ".join(inputs)
    reference = (
        f"{print_source(samples[0]).strip()}\n\n\ndef run({arguments}):\n"
        f"    outputs = GraphModule()({arguments})\n"
        "    is_single = isinstance(outputs, tuple) and len(outputs) == 1\n"
        "    return outputs[0] if is_single else outputs\n"
    )
    definition = {
        "name": name,
        "op_type": problem.row["category"],
        "axes": {
            axis: {"type": "const", "value": sizes[0]} if len({*sizes}) == 1 else {"type": "var"}
            for axis, sizes in axes.items()
        },
        "inputs": inputs,
        "outputs": outputs,
        "reference": reference,
        "tags": [f"source:graphnet-datasets:{problem.id}"],
    }
    return definition, axes


def _results(sample: Sample) -> list[Any]:
    """Return the types of the outputs of a sample."""
    values = []
    for leaf in iterate_leaves(sample.outputs):
        place = leaf.index - len(sample.inputs) if isinstance(leaf, Ref) else -1
        types = sample.ops[place].results if place >= 0 else None
        if not types or len(types) != 1 or types[0].shape is None or types[0].dtype not in DTYPES:
            raise SampleError("An output has an unknown size or a dtype without a name.")
        values.append(types[0])
    return values


def _specify(
    axes: dict[str, tuple[int, ...]], values: Sequence[Any], *, can_add_variable: bool
) -> dict[str, Any]:
    """Return the specification of a tensor, whose sizes in all samples are axes."""
    names = {sizes: axis for axis, sizes in axes.items()}
    shape = []
    for sizes in zip(*(value.shape for value in values), strict=True):
        if sizes not in names:
            if not can_add_variable and len({*sizes}) > 1:
                raise SampleError("The size of an output is not the size of an input.")
            names[sizes] = f"axis_{len(axes)}"
            axes[names[sizes]] = sizes
        shape.append(names[sizes])
    return {"shape": shape, "dtype": values[0].dtype}
