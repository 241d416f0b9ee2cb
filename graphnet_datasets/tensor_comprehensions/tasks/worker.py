"""The jobs of isolated processes for tensor comprehensions: spaces, references, measurements.

The counterpart of `graphnet_datasets.tuning.worker`. Outputs are compared with the interpreter's
float64 results, as in `tuner.evaluation`.
"""

from __future__ import annotations

import io
import json
import math
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import GraphNetError, TuningError
from ...isolation import RESULT_FILE, Reporter
from ...scores.tolerance import oracle_t
from ...tuning.measurement import MAX_TIMING_S, TrialStatus
from ...tuning.references import reference_problem
from ...tuning.space_worker import serve_space
from ...tuning.task import Task
from ..codegen.compile_worker import compile_source
from ..codegen.machine import this_machine
from ..codegen.toolchain import command
from ..compiling import Compiled, generate
from ..kernel import storage_dtype
from ..language.instance import Instance
from ..language.interpreter import interpret
from ..options import Options
from ..tuner.evaluation import TOLERANCES, stored
from ..tuner.measure_worker import difference, loaded
from .making import draw_inputs, instance_of, options_of, tool_versions
from .space import OptionsSpace, features_of_groups

_ANCHOR_SIZE = 192


def prepare() -> None:
    """Import the generator's libraries before jobs are forked."""
    import islpy  # noqa: F401


def work(payload: Mapping[str, Any], reporter: Reporter, directory: Path) -> None:
    """Run the job of the payload's `kind`."""
    kind = payload["kind"]
    if kind == "space":
        space = OptionsSpace(kind=payload["space"])
        serve_space(directory / payload["socket"], space, this_machine().model)
        return
    if kind == "anchor":
        reporter.enter("time")
        matrix = np.full((_ANCHOR_SIZE, _ANCHOR_SIZE), 0.5, np.float32)
        times = repeated(lambda: _product_ms(matrix), 1, payload["repeat"], 5, 1)
        reporter.send({"anchor_ms": times, "tool_versions": tool_versions()})
        return
    job = json.loads(Path(payload["job"]).read_text())
    task = Task(
        job["task_id"], job["workload_json"], job["target_json"], job["task_name"], "", (), ()
    )
    if kind == "reference":
        reporter.enter("check")
        reference(task, job["input_seed"], reporter, directory)
    else:
        measure(task, job, reporter, directory)


def reference(task: Task, seed: int, reporter: Reporter, directory: Path) -> None:
    """Write an `.npz` of the outputs, computed by the interpreter in float64."""
    instance = instance_of(task)
    first, second = (_expected(instance, number) for number in (seed, seed + 1))
    has_inputs = bool(instance.inputs) or any(tensor.is_updated for tensor in instance.outputs)
    problem = reference_problem(first, second, has_inputs=has_inputs)
    if problem:
        reporter.send({"uncheckable": problem})
        return
    content = io.BytesIO()
    np.savez(content, **first)
    (directory / RESULT_FILE).write_bytes(content.getvalue())


def measure(task: Task, job: Mapping[str, Any], reporter: Reporter, directory: Path) -> None:
    """Build, check and time one candidate, and send the results; see `tuning.worker.measure`."""
    started = time.perf_counter()
    try:
        instance, options = instance_of(task), options_of(task, job["trace_json"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            generated = generate(instance, options)
    except GraphNetError as error:
        reporter.send({"status": TrialStatus.SCHEDULE_FAILED, "error": str(error)})
        return
    features = features_of_groups(generated.groups, options)
    reporter.send({"features": features.tolist(), "feature_set": OptionsSpace.feature_set})
    try:
        kernel = _compiled(generated, options, directory)
    except (GraphNetError, OSError) as error:
        reporter.send({"status": TrialStatus.BUILD_FAILED, "error": str(error)})
        return
    reporter.send({"build_s": time.perf_counter() - started})
    reporter.enter("check")
    started = time.perf_counter()
    arrays = _arrays(instance, job["input_seed"])
    run_ms = loaded(str(kernel), list(arrays.values()), generated.threads)
    call_s = run_ms() / 1e3
    with np.load(job["reference"], allow_pickle=False) as outputs:
        expected = {name: outputs[name] for name in outputs.files}
    largest, worst_t, problem = compare(instance, arrays, expected)
    reporter.send({"max_abs_error": largest, "min_t": worst_t})
    if problem:
        reporter.send({"status": TrialStatus.WRONG, "error": problem})
        return
    if not job["is_timed"]:
        reporter.send({"status": TrialStatus.OK})
        return
    reporter.enter("time")
    repeat = max(2, min(job["repeat"], int(MAX_TIMING_S / max(call_s, 1e-9))))
    times_ms = repeated(run_ms, job["number"], repeat, job["min_repeat_ms"], job["warmup"])
    reporter.send(
        {
            "status": TrialStatus.OK,
            "times_ms": times_ms,
            "repeat": repeat,
            "run_s": time.perf_counter() - started,
            "tool_versions": tool_versions(),
        }
    )


def compare(
    instance: Instance, arrays: Mapping[str, Any], expected: Mapping[str, Any]
) -> tuple[float, float | None, str]:
    """Return the largest absolute error, the smallest passing t, and the problem or ""."""
    if {name: array.shape for name, array in expected.items()} != {
        tensor.name: tensor.shape for tensor in instance.outputs
    }:
        raise TuningError(
            "The reference outputs belong to another workload. Delete them and start again."
        )
    largest, worst_t, problem = 0.0, -math.inf, ""
    for tensor in instance.outputs:
        array, truth, dtype = arrays[tensor.name], expected[tensor.name], tensor.dtype.name
        oracle = truth if tensor.dtype.is_float else truth.astype(array.dtype)
        t = oracle_t(array, oracle, dtype)
        worst_t = math.inf if t is None else max(worst_t, t)
        values = array
        if dtype == "bfloat16":
            values = (array.astype(np.uint32) << 16).view(np.float32)
        with np.errstate(invalid="ignore"):
            gaps = np.abs(values.astype(np.float64) - truth.astype(np.float64))
        largest = max(largest, float(np.nan_to_num(gaps, nan=0.0).max(initial=0.0)))
        error = difference(array, truth, str(array.dtype))
        if not error <= TOLERANCES.get(str(array.dtype), 0.0):
            problem = f"The output `{tensor.name}` differs by {error:.3g} of its scale."
    return largest, worst_t, problem


def repeated(
    run_ms: Callable[[], float], number: int, repeat: int, min_repeat_ms: float, warmup: int
) -> list[float]:
    """Return `repeat` means in milliseconds, each over calls that last `min_repeat_ms` in total."""
    for _ in range(warmup):
        run_ms()
    calls = max(number, math.ceil(min_repeat_ms / max(run_ms(), 1e-6)))
    return [sum(run_ms() for _ in range(calls)) / calls for _ in range(repeat)]


def _expected(instance: Instance, seed: int) -> dict[str, Any]:
    inputs, outputs = draw_inputs(instance, seed)
    values = interpret(instance, inputs, outputs, float64=True)
    return {tensor.name: array for tensor, array in zip(instance.outputs, values, strict=True)}


def _arrays(instance: Instance, seed: int) -> dict[str, Any]:
    """Return the arrays of all tensors in memory, with accumulated outputs set."""
    inputs, outputs = draw_inputs(instance, seed)
    arrays = {
        tensor.name: np.zeros(tensor.shape, storage_dtype(tensor)) for tensor in instance.tensors
    }
    values = {tensor.name: array for tensor, array in zip(instance.inputs, inputs, strict=True)}
    for tensor in instance.tensors:
        if tensor.name in values or tensor.name in outputs:
            arrays[tensor.name][...] = stored(tensor, {**values, **outputs}[tensor.name])
    return arrays


def _compiled(generated: Compiled, options: Options, directory: Path) -> Path:
    """Return the path of the shared object, compiled in the job's directory."""
    program = generated.program
    source = directory / "kernel.c"
    source.write_text(program.source)
    compiler = command(program, options.compiler, options.extra_flags)
    try:
        return compile_source(compiler, source, program.libraries, directory)
    except RuntimeError as error:
        raise TuningError(f"The compiler failed: {str(error)[-400:].strip()}") from error


def _product_ms(matrix: Any) -> float:
    start = time.perf_counter()
    np.matmul(matrix, matrix)
    return (time.perf_counter() - start) * 1e3
