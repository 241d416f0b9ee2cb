"""Extraction of tasks from lowered TVM graphs, and serialization of workloads.

A workload is serialized as TVM's JSON. Variables are numbered if their names have no other use, and
the version of TVM is removed, so that most equal operators of different graphs have equal JSON;
TVM's structural hash identifies all of them. Blocks keep their names, which traces refer to.

Workloads, targets and traces are untrusted. Use `load_workload`, `load_target` and `replay` only in
isolated processes; they verify their input with `verifying` before TVM parses it.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import importlib
import importlib.metadata
import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..compilers.tvm import PIPELINE
from ..errors import TuningError, UnverifiedProgramError
from .intrinsics import import_meta_schedule
from .task import Task, TaskSource, task_key
from .verifying import verify_target, verify_trace, verify_workload

MAX_WORKLOAD_CHARACTERS = 4 * 2**20

_FAMILIES = (
    ("attention", r"attention"),
    ("conv_transpose", r"conv\dd_transpose"),
    ("conv3d", r"conv3d"),
    ("conv2d", r"conv2d|conv(?!\d)"),
    ("conv1d", r"conv1d"),
    ("matmul", r"matmul|dense|linear"),
    ("softmax", r"softmax"),
    ("norm", r"norm"),
    ("pool", r"pool"),
    ("scan", r"cum(sum|prod)|sort|topk|scan"),
    ("reduce", r"(^|_)(sum|mean|max|min|prod|variance|std|arg(max|min))\d*(_|$)"),
    ("index", r"take|gather|scatter|index|one_hot|nonzero|strided_slice|where|embedding"),
    ("layout", r"transpose|reshape|concatenate|split|permute|expand_dims|squeeze|tile|pad|flip"),
)


def family_of(task_name: str, arg_shapes: Iterable[tuple[int, ...]] = ()) -> str:
    """Return the kind of operator from the name of a fused function, `elementwise` by default.

    Families are tried in order of cost, so that a convolution followed by a sum is a convolution.
    A product of two batched inputs is `batch_matmul`.

    >>> family_of("fused_conv2d1_add_relu"), family_of("fused_add_tanh"), family_of("mean2")
    ('conv2d', 'elementwise', 'reduce')
    >>> family_of("matmul", [(2, 8, 16, 4), (2, 8, 4, 16), (2, 8, 16, 16)])
    'batch_matmul'
    """
    for family, pattern in _FAMILIES:
        if re.search(pattern, task_name):
            shapes = list(arg_shapes)
            if family == "matmul" and len(shapes) > 2 and all(len(s) > 2 for s in shapes[:2]):
                return "batch_matmul"
            return family
    return "elementwise"


@dataclasses.dataclass(frozen=True)
class Extraction:
    """The tasks of a graph, and the number of functions that are not tasks, by reason."""

    tasks: tuple[Task, ...]
    skipped: dict[str, int]


def extract_tasks(graph: Any, target: Any, source: TaskSource | None = None) -> Extraction:
    """Return the tasks of a Relax module after the passes of `compilers.tvm.PIPELINE`.

    Each task has `source` as its only source, with the number of calls in the graph. Functions with
    symbolic shapes are not tasks.
    """
    ms = import_meta_schedule()
    skipped: collections.Counter[str] = collections.Counter()
    by_id: dict[str, Task] = {}
    target_json = target_text(target)
    for extracted in ms.relax_integration.extract_tasks(graph, target, {}):
        workload = extracted.dispatched[0]
        try:
            arguments = argument_types(workload)
        except (TypeError, ValueError, AttributeError):
            skipped["symbolic shapes"] += 1
            continue
        text = workload_text(workload)
        if len(text) > MAX_WORKLOAD_CHARACTERS:
            skipped["workload too long due to large constants"] += 1
            continue
        weight = int(extracted.weight)
        task = make_task(workload, str(extracted.task_name), target_json, text, arguments)
        if task.task_id in by_id:
            weight += by_id[task.task_id].weight
        by_id[task.task_id] = dataclasses.replace(
            task,
            sources=() if source is None else (dataclasses.replace(source, count=weight),),
            pipeline=PIPELINE,
        )
    return Extraction(tuple(by_id.values()), dict(skipped))


def argument_types(workload: Any) -> list[tuple[tuple[int, ...], str]]:
    """Return the shape and dtype of each argument of a workload, outputs last.

    Raises:
        TypeError, ValueError, AttributeError: a shape is symbolic.
    """
    arg_info = importlib.import_module("tvm.s_tir.meta_schedule.arg_info")
    infos = arg_info.ArgInfo.from_entry_func(workload, remove_preproc=True)
    return [(tuple(int(size) for size in info.shape), str(info.dtype)) for info in infos]


def make_task(
    workload: Any,
    name: str,
    target_json: str,
    text: str,
    arguments: Sequence[tuple[tuple[int, ...], str]],
) -> Task:
    """Return the task of a workload from its JSON and `argument_types`, without sources."""
    shapes = tuple(shape for shape, _ in arguments)
    versions = tool_versions()
    return Task(
        task_id=task_key(text, target_json),
        workload_json=text,
        target_json=target_json,
        task_name=name,
        family=family_of(name, shapes),
        arg_shapes=shapes,
        arg_dtypes=tuple(dtype for _, dtype in arguments),
        flops=flops_of(workload),
        bytes=sum(bytes_of(shape, dtype) for shape, dtype in arguments),
        structural_hash=structural_hash(workload),
        hash_version=f"tvm {versions['tvm']}",
        tool_versions=versions,
    )


def bytes_of(shape: tuple[int, ...], dtype: str) -> int:
    """Return the size of an array in bytes.

    >>> bytes_of((2, 3), "float16"), bytes_of((8,), "bool"), bytes_of((2,), "bfloat16")
    (12, 8, 4)
    """
    bits = re.search(r"\d+", dtype)
    size = 1 if bits is None else max(1, int(bits.group()) // 8)
    return math.prod(shape) * size


def flops_of(workload: Any) -> int:
    """Return TVM's count of floating-point operations per call, or 0 if it cannot count them."""
    tvm = importlib.import_module("tvm")
    try:
        flops = float(tvm.s_tir.analysis.estimate_tir_flops(workload))
    except Exception:  # TVM cannot count loops with data-dependent extents
        return 0
    return int(flops) if math.isfinite(flops) and flops >= 0 else 0


def structural_hash(workload: Any) -> str:
    """Return the hash that identifies a workload in a TVM database."""
    database = importlib.import_module("tvm.s_tir.meta_schedule.database")
    return str(database.Workload(workload).as_json()[0])


def workload_text(workload: Any) -> str:
    """Return the JSON of a workload with graph-specific variable names removed."""
    tvm = importlib.import_module("tvm")
    content = json.loads(tvm.ir.save_json(workload))
    return json.dumps(number_variables(content), separators=(",", ":"))


def number_variables(content: dict[str, Any]) -> dict[str, Any]:
    """Return TVM's JSON of a module with variables renamed to `v0`, `v1`, … in order.

    Names with another use, such as block names, are kept.
    """
    nodes: list[dict[str, Any]] = [dict(node) for node in content["nodes"]]
    other_names: set[int] = set()
    variable_names: dict[int, None] = {}
    for node in nodes:
        data = node.get("data")
        if node["type"].endswith(".Var") and isinstance(data, dict) and "name" in data:
            variable_names[data["name"]] = None
        elif isinstance(data, dict):
            other_names |= {data[key] for key in _NAMES if isinstance(data.get(key), int)}
        elif isinstance(data, list):
            other_names |= {item for item in data if isinstance(item, int)}
    chosen = [index for index in variable_names if index not in other_names]
    for number, index in enumerate(chosen):
        nodes[index] = {**nodes[index], "data": f"v{number}"}
    return {"root_index": content["root_index"], "nodes": nodes}


_NAMES = ("name", "name_hint", "thread_tag", "global_symbol", "scope")


def load_workload(text: str, *, trust_remote_code: bool = False) -> Any:
    """Parse a workload's JSON, verified unless `trust_remote_code`.

    Raises:
        UnverifiedProgramError: the verifier rejects the workload.
        TuningError: TVM cannot parse it, or its functions are not exactly `main`.
    """
    tvm = importlib.import_module("tvm")
    if not trust_remote_code:
        text = verify_workload(text)
    try:
        module = tvm.ir.load_json(text)
        names = [str(variable.name_hint) for variable in module.get_global_vars()]
    except Exception as error:  # TVM raises many types
        raise TuningError(
            f"A workload cannot be parsed: {_first_line(error)}. Extract the task again."
        ) from error
    if names != ["main"]:
        raise TuningError(
            f"A workload must have the single function `main`, got {names[:3]}. Extract the task "
            "again."
        )
    if not trust_remote_code:
        _check_regions(module["main"])
    return module


def _check_regions(function: Any) -> None:
    """Raise an error unless each block declares the regions that it reads and writes.

    Schedule primitives compute and allocate only the declared regions. A scheduled block with
    incomplete declarations could therefore access memory outside its buffers.
    """
    analysis = importlib.import_module("tvm.s_tir.analysis")
    is_equal = importlib.import_module("tvm_ffi").structural_equal
    buffers = list(function.params)
    blocks, waiting = [], [function.body]
    while waiting:
        statement = waiting.pop()
        kind = type(statement).__name__
        if kind == "SeqStmt":
            waiting += list(statement.seq)
        elif kind == "For":
            waiting.append(statement.body)
        elif kind == "SBlockRealize":
            block = statement.block
            waiting.append(block.body)
            buffers += list(block.alloc_buffers)
            if block.iter_vars or block.name_hint != "root":  # the root need not declare regions
                blocks.append(block)
    names = [str(variable.name) for variable in buffers]
    names += [str(axis.var.name) for block in blocks for axis in block.iter_vars]
    # TVM may treat equal gathers as different regions, so their printed forms are compared.
    is_clear = len(names) == len(set(names))
    for block in blocks:
        reads, writes, _ = analysis.get_sblock_access_region(
            block, {buffer: buffer for buffer in buffers}
        )
        for used, declared in ((reads, block.reads), (writes, block.writes)):
            for region in used:
                if not any(
                    is_equal(item, region) or (is_clear and str(item) == str(region))
                    for item in declared
                ):
                    raise UnverifiedProgramError(
                        f"The block `{block.name_hint}` of a workload uses undeclared regions, so "
                        "that a schedule could access memory outside its buffers. If you trust its "
                        "author, pass `--trust-remote-code`."
                    )


def target_text(target: Any) -> str:
    """Return a target as JSON."""
    return json.dumps(json.loads(str(target)), sort_keys=True, separators=(",", ":"))


def load_target(text: str, *, trust_remote_code: bool = False) -> Any:
    """Parse a target's JSON, verified unless `trust_remote_code`.

    Raises:
        UnverifiedProgramError: the verifier rejects the target.
        TuningError: TVM does not support the target.
    """
    tvm = importlib.import_module("tvm")
    content = None if trust_remote_code else verify_target(text)
    try:
        return tvm.target.Target(json.loads(text) if content is None else content)
    except Exception as error:  # TVM raises many types
        raise TuningError(
            f"A target cannot be parsed: {_first_line(error)}. Extract the task again."
        ) from error


def trace_text(trace: Any) -> str:
    """Return a trace as JSON."""
    return json.dumps(trace.as_json(), default=_number, separators=(",", ":"))


def replay(workload: Any, trace_json: str, *, trust_remote_code: bool = False) -> Any:
    """Return the schedule of a workload after replaying a trace, verified unless trusted.

    Raises:
        UnverifiedProgramError: the verifier rejects the trace.
        TuningError: the JSON is not a trace, or the trace does not apply to the workload.
    """
    tvm = importlib.import_module("tvm")
    content = None if trust_remote_code else verify_trace(trace_json)
    try:
        content = json.loads(trace_json) if content is None else content
        schedule = tvm.s_tir.Schedule(workload, debug_mask=0, error_render_level="none")
        schedule.trace.apply_json_to_schedule(content, schedule)
    except Exception as error:  # TVM raises many types
        raise TuningError(
            f"A trace does not replay: {_first_line(error)}. Leave out this candidate."
        ) from error
    return schedule


def tool_versions() -> dict[str, str]:
    """Return the versions of the code generators."""
    return dict(_tool_versions())


@functools.cache
def _tool_versions() -> dict[str, str]:
    """Return the versions, cached because package metadata is searched on disk."""
    tvm = importlib.import_module("tvm")
    versions = {"tvm": str(tvm.__version__)}
    versions["ffi"] = importlib.metadata.version("apache-tvm-ffi")
    major = tvm.get_global_func("target.llvm_version_major", allow_missing=True)
    if major is not None:
        versions["llvm"] = str(major())
    return versions


def numpy_dtype(dtype: str) -> Any:
    """Return the NumPy dtype of a TVM dtype; bfloat16 and float8 come from `ml_dtypes`."""
    try:
        return np.dtype(dtype)
    except TypeError:
        return np.dtype(getattr(importlib.import_module("ml_dtypes"), dtype))


def _number(value: Any) -> Any:
    """Return the value of a TVM node in a decision or attribute."""
    return value.value


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    text = lines[-1] if lines else type(error).__name__
    return text.strip().rstrip(".")[:300]
