"""Tuning tasks of definitions with concrete shapes, and their options as traces.

The workload of a task is a JSON object with the source, the name of the definition, the shape of
each input and the values of constants. A trace is a JSON object of options.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...decoding import load_json
from ...errors import GraphNetError, TuningError
from ...tuning.roles import Role
from ...tuning.target import target_of
from ...tuning.task import Task, TaskSource, task_key
from ..cache import GENERATOR_VERSION
from ..codegen.machine import this_machine
from ..codegen.toolchain import compiler_identity
from ..definition import Definition, define
from ..kernel import storage_dtype
from ..language.affine import Affine
from ..language.expressions import Binary, Call, Load, walk
from ..language.instance import Instance, Tensor
from ..options import Options
from . import KIND


def make_task(
    definition: Definition | str,
    name: str,
    shapes: Sequence[Sequence[int]],
    *,
    constants: Mapping[str, int] | None = None,
    threads: int = 1,
    sources: Sequence[TaskSource] = (),
) -> Task:
    """Return the tuning task of a definition for dense inputs of these shapes on this machine.

    `constants` are values of integral scalar inputs, which are then omitted from `shapes`.

    Raises:
        TensorComprehensionError: the definition is invalid, or the shapes do not match it.

    >>> source = "def mv(float(M,K) A, float(K) x) -> (y) { y(m) +=! A(m,k) * x(k) }"
    >>> task = make_task(source, "mv", [(8, 16), (16,)])
    >>> task.family, task.arg_shapes, task.flops
    ('matmul', ((8, 16), (16,), (8,)), 256)
    """
    definition = define(definition) if isinstance(definition, str) else definition
    instance = definition.instance_at(name, shapes, constants=constants)
    workload = {
        "source": definition.source,
        "entry": name,
        "shapes": [list(shape) for shape in shapes],
        "constants": dict(sorted((constants or {}).items())),
    }
    machine = this_machine()
    target = {"kind": KIND, "mcpu": machine.model, "isa": machine.isa, "num-cores": threads}
    workload_json, target_json = (
        json.dumps(part, sort_keys=True, separators=(",", ":")) for part in (workload, target)
    )
    tensors = (*instance.inputs, *instance.outputs)
    return Task(
        task_id=task_key(workload_json, target_json),
        workload_json=workload_json,
        target_json=target_json,
        task_name=name,
        family=_family(instance),
        arg_shapes=tuple(tensor.shape for tensor in tensors),
        arg_dtypes=tuple(tensor.dtype.name for tensor in tensors),
        flops=_flops(instance),
        bytes=sum(tensor.num_elements * storage_dtype(tensor).itemsize for tensor in tensors),
        sources=tuple(sources),
        structural_hash=hashlib.sha256(instance.canonical_text.encode()).hexdigest(),
        hash_version=f"tc {GENERATOR_VERSION}",
        pipeline=KIND,
        tool_versions=tool_versions(),
    )


def tool_versions() -> dict[str, str]:
    """Return the versions of the code generators."""
    return {
        "tc": str(GENERATOR_VERSION),
        "islpy": importlib.metadata.version("islpy"),
        "gcc": compiler_identity("gcc")[1],
    }


def instance_of(task: Task) -> Instance:
    """Return the instance of a task.

    Raises:
        TuningError: the workload is not a definition with shapes that match it.
    """
    try:
        workload = load_json(task.workload_json, "a workload")
        return define(workload["source"]).instance_at(
            workload["entry"], workload["shapes"], constants=workload["constants"]
        )
    except (GraphNetError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise TuningError(
            f"The workload of the task `{task.task_name}` is not a tensor comprehension: "
            f"{type(error).__name__}: {error} Write tasks with `graphnet tc tasks`."
        ) from error


def trace_of(options: Options) -> str:
    """Return the trace of options: those that differ from the default, as JSON.

    >>> trace_of(Options(unroll=4, tile=(8, 0)))
    '{"tile":[8,0],"unroll":4}'
    """
    default = Options().to_dict()
    values = {
        name: value
        for name, value in options.to_dict().items()
        if value != default[name] and name != "threads"
    }
    return json.dumps(values, sort_keys=True, separators=(",", ":"))


def options_of(task: Task, trace_json: str) -> Options:
    """Return the options of a trace, with the number of threads of the task.

    Raises:
        TuningError: the trace is not an object of options with allowed values.
    """
    threads = target_of(task).threads
    try:
        values = load_json(trace_json, "a trace")
        options = Options.from_dict(values)
        if options.threads not in (None, threads):
            raise TuningError(
                f"`threads` is {options.threads}, but the target has {threads} threads."
            )
        return options.with_threads(threads)
    except (GraphNetError, ValueError, TypeError, AttributeError) as error:
        raise TuningError(
            f"A trace is not an object of options: {error} Leave out this candidate."
        ) from error


def draw_inputs(instance: Instance, seed: int) -> tuple[list[Any], dict[str, Any]]:
    """Return reproducible inputs, and initial contents of accumulated outputs by name.

    A subscript is below the size of the dimensions that it indexes; other elements are those of a
    `tuning.roles.Role`. bfloat16 is returned as float32.
    """
    bounds = _subscript_bounds(instance)
    random = np.random.default_rng(seed)
    arrays = [_drawn(tensor, bounds.get(tensor.name), random) for tensor in instance.inputs]
    outputs = {
        tensor.name: _drawn(tensor, None, random)
        for tensor in instance.outputs
        if tensor.is_updated
    }
    return arrays, outputs


def _drawn(tensor: Tensor, bound: int | None, random: np.random.Generator) -> Any:
    name = "float32" if tensor.dtype.name == "bfloat16" else tensor.dtype.name
    role = Role() if bound is None else Role(bound)
    return role.draw(tensor.shape, np.dtype(name), random)


def _subscript_bounds(instance: Instance) -> dict[str, int]:
    """Return for each tensor whose elements are subscripts the smallest size that they index."""
    bounds: dict[str, int] = {}
    for statement in instance.statements:
        for load in statement.loads:
            shape = instance.tensor(load.tensor).shape
            for subscript, size in zip(load.subscripts, shape, strict=True):
                if isinstance(subscript, Affine):
                    continue
                for node in walk(subscript):
                    if isinstance(node, Load):
                        bounds[node.tensor] = min(size, bounds.get(node.tensor, size))
    return bounds


def _family(instance: Instance) -> str:
    families = ("index", "matmul", "reduce", "elementwise")
    names = [families[-1]]
    for statement in instance.statements:
        loads = statement.loads
        if any(not isinstance(part, Affine) for load in loads for part in load.subscripts):
            names.append("index")
        elif statement.reductions:
            names.append("matmul" if statement.operator == "+" and len(loads) > 1 else "reduce")
    return min(names, key=families.index)


def _flops(instance: Instance) -> int:
    total = 0
    for statement in instance.statements:
        operations = sum(
            isinstance(node, Binary | Call) and node.type.is_float for node in walk(statement.value)
        )
        points = math.prod(index.extent for index in statement.indices)
        total += points * (operations + (statement.operator != "=" and statement.type.is_float))
    return total
