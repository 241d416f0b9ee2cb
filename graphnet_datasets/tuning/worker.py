"""The jobs of isolated processes: measuring a candidate, references, the anchor, and spaces.

A job sends its results as messages in the phase that produced them: if a candidate later hangs or
crashes, its build time and features are still known.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..compilers.tvm import native_processor
from ..errors import TuningError, UnverifiedProgramError
from ..isolation import RESULT_FILE, Reporter
from ..scores.tolerance import min_t
from .extract import (
    argument_types,
    load_target,
    load_workload,
    numpy_dtype,
    replay,
    tool_versions,
)
from .interfaces import Space
from .intrinsics import import_meta_schedule
from .machine_code import MACHINE_CODE_SET, machine_code_features
from .measurement import MAX_TIMING_S, TrialStatus
from .references import reference_problem
from .roles import Role
from .task import Task
from .tir_lowering import build
from .verifying import argument_roles

CORRECT_T = -3.0
"""Tolerance t of `runs` at which all outputs of a correct candidate must pass; for float32 within
0.001 and 0.03 percent."""

_ANCHOR_SIZE = 128


def prepare() -> None:
    """Import TVM without starting its threads, because threads do not survive a fork."""
    os.environ.setdefault("TVM_NUM_THREADS", "1")  # read when TVM is imported
    import_meta_schedule()


def work(payload: Mapping[str, Any], reporter: Reporter, directory: Path) -> None:
    """Run the job of the payload's `kind`."""
    kind = payload["kind"]
    if kind == "space":
        from .space_worker import serve_space

        trust = bool(payload.get("trust_remote_code"))
        space = make_space(payload["space"], trust_remote_code=trust)
        serve_space(directory / payload["socket"], space, native_processor())
        return
    if kind in ("export", "import"):
        trust = bool(payload.get("trust_remote_code"))
        exchange(kind, payload["source"], Path(payload["target"]), reporter, trust)
        return
    job = json.loads(Path(payload["job"]).read_text()) if "job" in payload else {}
    if kind == "anchor":
        reporter.enter("time")
        target = load_target(
            payload["target_json"], trust_remote_code=bool(payload.get("trust_remote_code"))
        )
        times = anchor_times(target, payload["repeat"])
        reporter.send({"anchor_ms": times, "tool_versions": tool_versions()})
    elif kind == "reference":
        content = reference_outputs(job, reporter)
        if content is not None:
            (directory / RESULT_FILE).write_bytes(content)
    else:
        measure(job, reporter)


def make_space(kind: str, *, trust_remote_code: bool = False) -> Space:
    """Return the space of a kind, `sketches` or `templates`."""
    from .space import TvmSpace
    from .templates.space import TemplateSpace

    if kind == "sketches":
        return TvmSpace(trust_remote_code=trust_remote_code)
    if kind == "templates":
        return TemplateSpace(trust_remote_code=trust_remote_code)
    raise TuningError(f"There is no space `{kind}`. Choose `sketches` or `templates`.")


def exchange(
    kind: str, source: str, target: Path, reporter: Reporter, trust_remote_code: bool = False
) -> None:
    """Convert records to a TVM database or back."""
    from .records import fill_tuning, read_records
    from .tvm_database import read_tvm_database, write_tvm_database

    if kind == "export":
        tuning_records = read_records(source, with_features=False)
        write_tvm_database(tuning_records, target, trust_remote_code=trust_remote_code)
        reporter.send({"count": sum(row.is_ok for row in tuning_records.measurements)})
        return
    tuning_records = read_tvm_database(source, trust_remote_code=trust_remote_code)
    if not tuning_records.measurements:
        raise TuningError(
            f"None of the records in `{source}` can be parsed. {tuning_records.skipped_text}"
        )
    fill_tuning(target, tuning_records.tasks.values(), tuning_records.measurements)
    reporter.send({"skipped": dict(tuning_records.skipped)})


def measure(job: Mapping[str, Any], reporter: Reporter) -> None:
    """Build, check and time one candidate, and send the results.

    `job` has `workload_json`, `target_json`, `trace_json`, `input_seed`, `reference` (a path),
    `number`, `repeat`, `min_repeat_ms`, `warmup` and `is_timed`; without timing, the job ends after
    the check.
    """
    started = time.perf_counter()
    try:
        workload, target = _load(job)
        schedule = replay(workload, job["trace_json"], trust_remote_code=_is_trusted(job))
    except TuningError as error:
        reporter.send({"status": TrialStatus.SCHEDULE_FAILED, "error": str(error)})
        return
    if job["is_timed"]:
        _send_features(job, schedule, reporter)
    try:
        library = build(schedule.mod, target)
    except Exception as error:  # TVM and LLVM raise many types
        reporter.send({"status": TrialStatus.BUILD_FAILED, "error": _described(error)})
        return
    reporter.send({"build_s": time.perf_counter() - started})
    if job["is_timed"]:
        _send_machine_code(library, reporter)
    reporter.enter("check")
    started = time.perf_counter()
    tvm = importlib.import_module("tvm")
    inputs = make_arrays(argument_types(workload), job["input_seed"], roles_of(job))
    tensors = [tvm.runtime.tensor(array) for array in inputs]
    try:
        call_started = time.perf_counter()
        library["main"](*tensors)
        call_s = time.perf_counter() - call_started
    except Exception as error:  # TVM raises many types
        reporter.send({"status": TrialStatus.RUN_FAILED, "error": _described(error)})
        return
    with np.load(job["reference"], allow_pickle=False) as reference:
        largest, worst_t = compare(
            [tensor.numpy() for tensor in tensors], inputs, reference, argument_types(workload)
        )
    reporter.send({"max_abs_error": largest, "min_t": worst_t})
    if not worst_t <= CORRECT_T:
        error = f"The outputs differ from those of the unscheduled workload: t = {worst_t:.3g}."
        reporter.send({"status": TrialStatus.WRONG, "error": error})
        return
    if not job["is_timed"]:
        reporter.send({"status": TrialStatus.OK})
        return
    reporter.enter("time")
    repeat = max(2, min(job["repeat"], int(MAX_TIMING_S / max(call_s, 1e-9))))
    for _ in range(job["warmup"]):
        library["main"](*tensors)
    timer = library.time_evaluator(
        "main",
        tvm.cpu(),
        number=job["number"],
        repeat=repeat,
        min_repeat_ms=job["min_repeat_ms"],
    )
    times_ms = [1e3 * float(result) for result in timer(*tensors).results]
    reporter.send(
        {
            "status": TrialStatus.OK,
            "times_ms": times_ms,
            "repeat": repeat,
            "run_s": time.perf_counter() - started,
            "tool_versions": tool_versions(),
        }
    )


def _send_features(job: Mapping[str, Any], schedule: Any, reporter: Reporter) -> None:
    """Send the features of a schedule, if it has any."""
    from .space import TvmSpace

    task = Task(
        job["task_id"], job["workload_json"], job["target_json"], job["task_name"], "", (), ()
    )
    try:
        space = TvmSpace(trust_remote_code=_is_trusted(job))
        features = space.features_of_schedule(task, schedule)
    except Exception:  # TVM's extractor does not support all template schedules
        return
    reporter.send({"features": features.tolist(), "feature_set": space.feature_set})


def _send_machine_code(library: Any, reporter: Reporter) -> None:
    """Send the features of the assembly, if it is of x86-64."""
    try:
        features = machine_code_features(library.inspect_source("asm"))
    except Exception:  # TVM raises many types for targets without assembly
        return
    reporter.send({"machine_code": features.tolist(), "machine_code_set": MACHINE_CODE_SET})


def reference_outputs(job: Mapping[str, Any], reporter: Reporter) -> bytes | None:
    """Return an `.npz` of the arrays that the unscheduled workload changes, by position.

    Returns None, and sends the problem, if a check against these arrays could not fail.

    Raises:
        TuningError: the workload cannot be parsed.
    """
    workload, target = _load(job)
    library = build(workload, target)
    reporter.enter("check")
    types, roles = argument_types(workload), roles_of(job)
    first, second = (
        _changed(library, make_arrays(types, seed, roles))
        for seed in (job["input_seed"], job["input_seed"] + 1)
    )
    problem = reference_problem(first, second, has_inputs=len(first) < len(types))
    if problem:
        reporter.send({"uncheckable": problem})
        return None
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **first)
    return content.getvalue()


def _changed(library: Any, inputs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays that a workload changes, by position."""
    tvm = importlib.import_module("tvm")
    tensors = [tvm.runtime.tensor(array) for array in inputs]
    library["main"](*tensors)
    outputs = {}
    for position, (before, tensor) in enumerate(zip(inputs, tensors, strict=True)):
        after = tensor.numpy()
        if before.tobytes() != after.tobytes():
            outputs[str(position)] = _bits(after)
    return outputs


def _is_trusted(job: Mapping[str, Any]) -> bool:
    return bool(job.get("trust_remote_code"))


def _load(job: Mapping[str, Any]) -> tuple[Any, Any]:
    trust = _is_trusted(job)
    return (
        load_workload(job["workload_json"], trust_remote_code=trust),
        load_target(job["target_json"], trust_remote_code=trust),
    )


def roles_of(job: Mapping[str, Any]) -> tuple[Role, ...] | None:
    """Return the roles of a workload's arguments, None if the verifier rejects it."""
    try:
        return argument_roles(job["workload_json"])
    except UnverifiedProgramError:
        return None


def make_arrays(
    types: Sequence[tuple[tuple[int, ...], str]], seed: int, roles: Sequence[Role] | None = None
) -> list[np.ndarray]:
    """Return reproducible arrays for all arguments of a workload, including outputs.

    Without roles, integers are at least 0 and below the smallest size of all arguments, since many
    are indices, which must be in bounds.

    >>> [array] = make_arrays([((2, 2), "int64")], 0)
    >>> sorted({*array.reshape(-1).tolist()} - {0, 1})
    []
    """
    bound = max(1, min((size for shape, _ in types for size in shape), default=1))
    arrays = []
    for position, (shape, dtype) in enumerate(types):
        random = np.random.default_rng([seed, position])
        role = Role(bound) if roles is None else roles[position]
        arrays.append(role.draw(shape, numpy_dtype(dtype), random))
    return arrays


def compare(
    actual: Sequence[np.ndarray],
    inputs: Sequence[np.ndarray],
    reference: Mapping[str, np.ndarray],
    types: Sequence[tuple[tuple[int, ...], str]],
) -> tuple[float, float]:
    """Return the largest difference over all arguments and the smallest t at which all pass.

    Arguments that the workload does not change must be unmodified.
    """
    largest, worst_t = 0.0, -np.inf
    for position, (array, (shape, dtype)) in enumerate(zip(actual, types, strict=True)):
        expected = reference.get(str(position))
        actual_bits = np.ascontiguousarray(_bits(array))
        expected_bits = np.ascontiguousarray(
            _bits(inputs[position]) if expected is None else expected
        )
        if expected_bits.shape != shape or expected_bits.dtype != actual_bits.dtype:
            raise TuningError(
                "The reference outputs belong to another workload. Delete them and start again."
            )
        if actual_bits.tobytes() == expected_bits.tobytes():
            continue
        worst_t = max(worst_t, min_t(actual_bits, expected_bits, dtype))
        with np.errstate(invalid="ignore"):
            differences = np.abs(
                array.astype(np.float64) - expected_bits.view(array.dtype).astype(np.float64)
            )
        largest = max(largest, float(np.nan_to_num(differences, nan=np.inf).max(initial=0.0)))
    return largest, float(worst_t)


def anchor_times(target: Any, repeat: int) -> list[float]:
    """Return milliseconds of a fixed matrix product without a schedule.

    It takes a few milliseconds for any task. Measured beside each batch, it reveals changes in the
    load of the machine.
    """
    tvm = importlib.import_module("tvm")
    te = importlib.import_module("tvm.te")
    size = _ANCHOR_SIZE
    left, right = (te.placeholder((size, size), "float32", name) for name in ("left", "right"))
    axis = te.reduce_axis((0, size), "k")
    product = te.compute((size, size), lambda i, j: te.sum(left[i, axis] * right[axis, j], axis))
    function = te.create_prim_func([left, right, product]).with_attr("global_symbol", "main")
    library = tvm.build(tvm.IRModule({"main": function}), target=target)
    arrays = make_arrays([((size, size), "float32")] * 3, 0)
    tensors = [tvm.runtime.tensor(array) for array in arrays]
    library["main"](*tensors)
    timer = library.time_evaluator("main", tvm.cpu(), number=1, repeat=repeat, min_repeat_ms=5)
    return [1e3 * float(result) for result in timer(*tensors).results]


def _bits(array: np.ndarray) -> np.ndarray:
    """Return an array with a NumPy dtype, viewing `ml_dtypes` arrays as bit patterns."""
    is_own = array.dtype.isbuiltin == 1
    return array if is_own else array.view(np.dtype(f"uint{8 * array.dtype.itemsize}"))


def _described(error: Exception) -> str:
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1].strip() if lines else ''}"[:500]
