"""Tasks cut from a lowered graph of TVM, and their workloads as text and back.

The text of a workload is that of TVM's IR as JSON. Variables are numbered where their names stand
for nothing else, and the version of TVM is left out, so that most equal operators of different
graphs have equal texts; TVM's structural hash tells that of all. Blocks keep their names, by which
traces find them.

Workloads, targets and traces come from others: `load_workload`, `load_target` and `replay` are for
isolated processes, and pass them through `verifying` before TVM sees them.
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
    """Return the kind of operator that a fused function's name tells of; `elementwise` for others.

    The first that fits of a list in the order of cost, so that a convolution with a sum behind it
    is a convolution. A product of two inputs with batches is `batch_matmul`.

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
    """The tasks of one graph, and how many of its functions are none, by reason."""

    tasks: tuple[Task, ...]
    skipped: dict[str, int]


def extract_tasks(graph: Any, target: Any, source: TaskSource | None = None) -> Extraction:
    """Return the tasks of a module of Relax behind the passes of `compilers.tvm.PIPELINE`.

    Each has one source, `source` with the number of calls in the graph. Functions with symbolic
    shapes are no tasks.
    """
    ms = import_meta_schedule()
    skipped: collections.Counter[str] = collections.Counter()
    found: dict[str, Task] = {}
    target_json = target_text(target)
    for each in ms.relax_integration.extract_tasks(graph, target, {}):
        workload = each.dispatched[0]
        try:
            arguments = argument_types(workload)
        except (TypeError, ValueError, AttributeError):
            skipped["its shapes are symbolic"] += 1
            continue
        text = workload_text(workload)
        if len(text) > MAX_WORKLOAD_CHARACTERS:
            skipped["its text is too long: it holds large constants"] += 1
            continue
        weight = int(each.weight)
        task = make_task(workload, str(each.task_name), target_json, text, arguments)
        if task.task_id in found:
            weight += found[task.task_id].weight
        found[task.task_id] = dataclasses.replace(
            task,
            sources=() if source is None else (dataclasses.replace(source, count=weight),),
            pipeline=PIPELINE,
        )
    return Extraction(tuple(found.values()), dict(skipped))


def argument_types(workload: Any) -> list[tuple[tuple[int, ...], str]]:
    """Return shape and dtype of each argument of a workload, outputs last.

    Raises:
        TypeError, ValueError, AttributeError: a shape is symbolic.
    """
    arg_info = importlib.import_module("tvm.s_tir.meta_schedule.arg_info")
    infos = arg_info.ArgInfo.from_entry_func(workload, remove_preproc=True)
    return [(tuple(int(size) for size in each.shape), str(each.dtype)) for each in infos]


def make_task(
    workload: Any,
    name: str,
    target_json: str,
    text: str,
    arguments: Sequence[tuple[tuple[int, ...], str]],
) -> Task:
    """Return the task of a workload, given its JSON and `argument_types`, without sources."""
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
    """Return the bytes of an array.

    >>> bytes_of((2, 3), "float16"), bytes_of((8,), "bool"), bytes_of((2,), "bfloat16")
    (12, 8, 4)
    """
    bits = re.search(r"\d+", dtype)
    size = 1 if bits is None else max(1, int(bits.group()) // 8)
    return math.prod(shape) * size


def flops_of(workload: Any) -> int:
    """Return the floating point operations of one call as TVM counts them, 0 where it cannot."""
    tvm = importlib.import_module("tvm")
    try:
        counted = float(tvm.s_tir.analysis.estimate_tir_flops(workload))
    except Exception:  # an error of TVM's own for loops whose extents depend on data
        return 0
    return int(counted) if math.isfinite(counted) and counted >= 0 else 0


def structural_hash(workload: Any) -> str:
    """Return the hash by which a database of TVM knows a workload."""
    database = importlib.import_module("tvm.s_tir.meta_schedule.database")
    return str(database.Workload(workload).as_json()[0])


def workload_text(workload: Any) -> str:
    """Return the text of a workload, without the names that a graph gave to its variables."""
    tvm = importlib.import_module("tvm")
    content = json.loads(tvm.ir.save_json(workload))
    return json.dumps(number_variables(content), separators=(",", ":"))


def number_variables(content: dict[str, Any]) -> dict[str, Any]:
    """Return TVM's JSON of a module with variables named `v0`, `v1`, … in order of appearance.

    Names that something else has too, a block above all, stay.
    """
    nodes: list[dict[str, Any]] = [dict(each) for each in content["nodes"]]
    of_others: set[int] = set()
    of_variables: dict[int, None] = {}
    for node in nodes:
        data = node.get("data")
        if node["type"].endswith(".Var") and isinstance(data, dict) and "name" in data:
            of_variables[data["name"]] = None
        elif isinstance(data, dict):
            of_others |= {data[key] for key in _NAMES if isinstance(data.get(key), int)}
        elif isinstance(data, list):
            of_others |= {each for each in data if isinstance(each, int)}
    chosen = [index for index in of_variables if index not in of_others]
    for number, index in enumerate(chosen):
        nodes[index] = {**nodes[index], "data": f"v{number}"}
    return {"root_index": content["root_index"], "nodes": nodes}


_NAMES = ("name", "name_hint", "thread_tag", "global_symbol", "scope")


def load_workload(text: str, *, trust_remote_code: bool = False) -> Any:
    """Return the module of a workload's text, verified unless `trust_remote_code`.

    Raises:
        UnverifiedProgramError: the verifier refuses it.
        TuningError: TVM cannot read it, or it is not a module with one function `main`.
    """
    tvm = importlib.import_module("tvm")
    if not trust_remote_code:
        text = verify_workload(text)
    try:
        module = tvm.ir.load_json(text)
        names = [str(each.name_hint) for each in module.get_global_vars()]
    except Exception as error:  # whatever TVM raises
        raise TuningError(f"A workload cannot be read: {_first_line(error)}.") from error
    if names != ["main"]:
        raise TuningError(f"A workload has the functions {names[:3]}; it has to have `main` only.")
    if not trust_remote_code:
        _check_regions(module["main"])
    return module


def _check_regions(function: Any) -> None:
    """Raise unless each block declares the regions that it reads and writes.

    Schedule primitives compute and allocate the declared regions alone, so that a block that
    declares too little would leave its buffers once it is scheduled.
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
            if block.iter_vars or block.name_hint != "root":  # the root may declare nothing
                blocks.append(block)
    names = [str(variable.name) for variable in buffers]
    names += [str(axis.var.name) for block in blocks for axis in block.iter_vars]
    # TVM holds the same gather for two different regions; their texts are equal.
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
                        f"The block `{block.name_hint}` of a workload declares other regions than "
                        "it uses, so that a schedule could leave its buffers. If you trust whoever "
                        "made it, pass `--trust-remote-code`."
                    )


def target_text(target: Any) -> str:
    """Return a target as JSON."""
    return json.dumps(json.loads(str(target)), sort_keys=True, separators=(",", ":"))


def load_target(text: str, *, trust_remote_code: bool = False) -> Any:
    """Return the target of a text, verified unless `trust_remote_code`.

    Raises:
        UnverifiedProgramError: the verifier refuses it.
        TuningError: TVM knows no such target.
    """
    tvm = importlib.import_module("tvm")
    content = None if trust_remote_code else verify_target(text)
    try:
        return tvm.target.Target(json.loads(text) if content is None else content)
    except Exception as error:  # whatever TVM raises
        raise TuningError(f"A target cannot be read: {_first_line(error)}.") from error


def trace_text(trace: Any) -> str:
    """Return a trace as JSON."""
    return json.dumps(trace.as_json(), default=_number, separators=(",", ":"))


def replay(workload: Any, trace_json: str, *, trust_remote_code: bool = False) -> Any:
    """Return the schedule that a trace's text makes of a workload, verified unless trusted.

    Raises:
        UnverifiedProgramError: the verifier refuses the trace.
        TuningError: the text is no trace, or the trace does not fit the workload.
    """
    tvm = importlib.import_module("tvm")
    content = None if trust_remote_code else verify_trace(trace_json)
    try:
        content = json.loads(trace_json) if content is None else content
        schedule = tvm.s_tir.Schedule(workload, debug_mask=0, error_render_level="none")
        schedule.trace.apply_json_to_schedule(content, schedule)
    except Exception as error:  # whatever TVM raises
        raise TuningError(f"A trace does not replay: {_first_line(error)}.") from error
    return schedule


def tool_versions() -> dict[str, str]:
    """Return the versions of what generates code here."""
    return dict(_tool_versions())


@functools.cache
def _tool_versions() -> dict[str, str]:
    """Read them once: the metadata of a package is searched for on the disk."""
    tvm = importlib.import_module("tvm")
    versions = {"tvm": str(tvm.__version__)}
    versions["ffi"] = importlib.metadata.version("apache-tvm-ffi")
    major = tvm.get_global_func("target.llvm_version_major", allow_missing=True)
    if major is not None:
        versions["llvm"] = str(major())
    return versions


def numpy_dtype(dtype: str) -> Any:
    """Return NumPy's dtype of one of TVM; bfloat16 and float8 are those of `ml_dtypes`."""
    try:
        return np.dtype(dtype)
    except TypeError:
        return np.dtype(getattr(importlib.import_module("ml_dtypes"), dtype))


def _number(value: Any) -> Any:
    """Return the number of a node of TVM, which traces hold in decisions and attributes."""
    return value.value


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    text = lines[-1] if lines else type(error).__name__
    return text.strip().rstrip(".")[:300]
