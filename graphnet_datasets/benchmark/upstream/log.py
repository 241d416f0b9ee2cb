"""Importing benchmark logs of upstream GraphNet as run records.

A log is the output of one process per sample. Each sample starts with a line `<prompt> [Processing]
<path>`; the `<prompt> [Kind]` lines after it appear in a fixed order and show how far the sample
got. `Block` is a small state machine over these lines. A sample's status is the last phase it
reached. Words in a traceback never decide the status, although they do in upstream's tools.
`upstream_status` records the status that upstream's tools would report, so that upstream's variants
of the scores reproduce upstream's numbers.
"""

from __future__ import annotations

import functools
import io
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...decoding import read_text
from ...errors import DatasetNotFoundError, RunError, SchemaError, raises_only
from ...schema import ERROR_CODES, RUNS_SCHEMA, Status, empty_run
from ...scores.tolerance import ATOL_RTOL_EXPONENTS, tolerances
from ..records.records import TABLE_NAME, hash_json, write_runs
from .block import Block

if TYPE_CHECKING:
    import datasets

LOGGED_TOLERANCES = range(-10, 6)
"""The values of t at which upstream compares outputs."""

_PROCESSING = "[Processing]"
_UPSTREAM_DTYPES = ("float16", "bfloat16", "float32", "float64")
_PAIR = re.compile(
    r"all_close_atol(?:(?P<old_atol>\d{1,2})_rtol(?P<old_rtol>\d{1,2})"
    r"|_(?P<atol>\d\.\d\dE[+-]\d\d)_rtol_(?P<rtol>\d\.\d\dE[+-]\d\d))"
)
_SAMPLE_ROOTS = ("samples", "paddle_samples")


@raises_only(SchemaError)
def import_log(
    path: str | os.PathLike[str], out: str | os.PathLike[str] | None = None
) -> datasets.Dataset:
    """Return the runs of an upstream benchmark log, one record per sample.

    The `min_t` of an output is the smallest logged integer t at which the output passes for its
    dtype: -inf if the log reports bit equality, inf if no comparison passes. Logs contain no
    family, task or `null_t`, so these columns are null. If `out` is given, the records are also
    written there: to `runs.parquet` in a directory, or to a file named `*.parquet`.

    Raises:
        DatasetNotFoundError: `path` is not a file.
        RunError: the log contains no benchmark sample.

    >>> import tempfile
    >>> lines = [
    ...     "log [Processing] /GraphNet/samples/timm/resnet18",
    ...     "log [Config] compiler: inductor",
    ...     "log [Result][status] eager:success compiled:failed",
    ... ]
    >>> with tempfile.NamedTemporaryFile("w") as file:
    ...     _ = file.write("\\n".join(lines)), file.flush()
    ...     runs = import_log(file.name)
    >>> runs["sample_id"][0], runs["status"][0], runs["upstream_status"][0]
    ('timm/resnet18', 'compile_failed', 'eager_fail')
    """
    import datasets

    path = Path(path)
    if not path.is_file():
        raise DatasetNotFoundError(f"There is no log at `{path}`. Check the path.")
    rows = [to_row(block) for block in read_blocks(io.StringIO(read_text(path), None))]
    if not rows:
        raise RunError(
            f"`{path}` has no line `{_PROCESSING} <path of a sample>`, with which each sample of "
            "upstream's benchmark logs begins. Pass a log of its `test_compiler` or "
            "`test_target_device`."
        )
    _fill_in(rows, "compiler")
    _fill_in(rows, "device")
    table = pa.Table.from_pylist(rows, schema=RUNS_SCHEMA)
    if out is not None:
        out = Path(out)
        out = out if out.suffix == ".parquet" else out / TABLE_NAME
        out.parent.mkdir(parents=True, exist_ok=True)
        write_runs(table, out)
    return datasets.Dataset(table)


def _fill_in(rows: list[dict[str, Any]], column: str) -> None:
    """Replace the missing values of a column if all other rows share one value.

    Samples whose process died early lack the value.
    """
    values = {row[column] for row in rows} - {None}
    if len(values) == 1:
        (value,) = values
        for row in rows:
            row[column] = value


def read_blocks(lines: Iterable[str]) -> Iterator[Block]:
    """Split a log into its samples, in order.

    >>> text = ["noise", "log [Processing] /samples/timm/resnet18", "log [Config] device: cpu"]
    >>> [(block.path, block.config) for block in read_blocks(text)]
    [('/samples/timm/resnet18', {'device': 'cpu'})]
    """
    block = None
    prompt = ""
    for line in lines:
        head, marker, path = line.partition(_PROCESSING)
        if marker:
            if block is not None:
                yield block
            # Text before the prompt, such as a time of day, may differ between lines.
            prompt = f"{head.split()[-1]} " if head.strip() else ""
            block = Block(path.strip())
            block.lines.append(line)
        elif block is not None:
            block.read_line(line, prompt)
    if block is not None:
        yield block


def to_row(block: Block) -> dict[str, Any]:
    """Return the run record of a sample."""
    status, reason, phase = block.outcome()
    upstream_status = block.upstream_word
    outputs = _outputs(block) if status is Status.OK else None
    framework_version = block.config.get("compile_framework_version")
    environment = {
        "hardware": block.config.get("hardware"),
        "compile_framework_version": framework_version,
    }
    # The model name identifies the sample; it is not a setting.
    settings = {name: value for name, value in block.config.items() if name != "model"}
    warnings = []
    if status is Status.OK and upstream_status != "correct":
        warnings.append(f"upstream's tools call this sample `{upstream_status}`")
    error_type, error_message = block.error or (None, None)
    if status is Status.HARNESS_FAILED and error_message is None:
        error_message = "The log covers one arm only, whose outputs were not compared."
    baseline, candidate = _times(block)
    passing, compared = _upstream_passing_t(block), block.compared("equal")
    return empty_run() | {
        "run_id": block.digest,
        "sample_id": _sample_id(block.path),
        "framework": "paddle" if "paddle_samples" in Path(block.path).parts else None,
        "compiler": block.config.get("compiler"),
        "compiler_version": framework_version,
        "baseline": "eager",
        "device": block.config.get("device"),
        "weights": "inputs",
        "input_mode": "replay",
        "status": str(status),
        "error_code": ERROR_CODES[status],
        "phase": phase,
        "reason": str(reason),
        "error_type": None if status is Status.OK else error_type,
        "error_message": None if status is Status.OK else error_message or block.cause or None,
        "upstream_status": upstream_status,
        "upstream_speedup": block.speedup,
        "upstream_min_t": float(min(passing, default=math.inf)) if compared else -math.inf,
        "upstream_passing_t": passing if compared else None,
        "num_attempts": 1,
        "baseline_latency_ms": baseline,
        "candidate_latency_ms": candidate,
        "speedup": block.speedup if status is Status.OK else None,
        "clock": "wall",
        "stopped_by": "trials",
        "baseline_wall_ms": _mean(block, "eager"),
        "candidate_wall_ms": _mean(block, "compiled"),
        "outputs": outputs,
        "min_t": max((output["min_t"] for output in outputs), default=None) if outputs else None,
        "warnings": warnings,
        "environment_id": hash_json(environment),
        "environment": json.dumps(environment),
        "settings_hash": hash_json(settings),
        "settings": json.dumps(settings),
    }


def _mean(block: Block, arm: str) -> float | None:
    return block.latencies.get(arm, {}).get("mean")


def _times(block: Block) -> tuple[list[float] | None, list[float] | None]:
    """Return the times of both arms: the timed calls if the log has them, otherwise their mean.

    A log of a comparison with stored outputs contains the calls of one arm only. Calls are
    therefore assigned to the arm whose printed mean they match (old logs print three digits).
    """
    left = [trials for trials in block.trials if trials]
    arm_times: list[list[float] | None] = []
    for arm in ("eager", "compiled"):
        mean = _mean(block, arm)
        times = None if mean is None else [mean]
        for trials in left:
            if mean and math.isclose(sum(trials) / len(trials), mean, rel_tol=0.006):
                times = trials
                left.remove(trials)
                break
        arm_times.append(times)
    return arm_times[0], arm_times[1]


def _outputs(block: Block) -> list[dict[str, Any]]:
    equal, max_diff, max_relative_diff = (
        block.compared(key) for key in ("equal", "max_diff", "max_relative_diff")
    )
    # The oldest logs do not contain dtypes.
    dtypes: list[str | None] = list(block.dtypes.get("eager", [None] * len(equal)))
    bounds = {dtype: _passing_from(block, dtype) for dtype in set(dtypes)}
    outputs = []
    for index, dtype in enumerate(dtypes):
        shape = _item(block.shapes.get("eager"), index)
        is_equal = bool(_item(equal, index))
        passing = [t for t, results in bounds[dtype] if _item(results, index) == 1]
        outputs.append(
            {
                "dtype": dtype,
                "candidate_dtype": _item(block.dtypes.get("compiled"), index),
                "shape": shape,
                "candidate_shape": _item(block.shapes.get("compiled"), index),
                "num_elements": None if shape is None else math.prod(shape),
                "max_abs_error": _item(max_diff, index),
                "max_rel_error": _item(max_relative_diff, index),
                "mismatch_share": 0.0 if is_equal else None,
                "min_t": -math.inf if is_equal else float(min(passing, default=math.inf)),
            }
        )
    return outputs


def _passing_from(block: Block, dtype: str | None) -> list[tuple[int, list[float]]]:
    """Return, for a dtype, pairs of the t that a comparison decides and the comparison's results.

    Early logs compare at five fixed pairs of tolerances. Without comparisons at the tolerances of
    `dtype`, a comparison decides the smallest t whose tolerances are at least as wide as those of
    the comparison. If `dtype` is None, this must hold for every dtype.
    """
    keys = {} if dtype is None else _keys_of(dtype)
    if any(key in block.comparisons for key in keys.values()):
        return [(t, block.compared(key)) for t, key in keys.items()]
    candidates = tuple(ATOL_RTOL_EXPONENTS) if dtype is None else (dtype,)
    decided = []
    for key in block.comparisons:
        pair = _PAIR.fullmatch(key)
        if pair is None:
            continue
        old = pair["old_atol"] is not None
        atol = float(f"1e-{pair['old_atol']}" if old else pair["atol"])
        rtol = float(f"1e-{pair['old_rtol']}" if old else pair["rtol"])
        for t in LOGGED_TOLERANCES:
            widths = [tolerances(t, candidate) for candidate in candidates]
            # The log prints tolerances with three digits.
            if all(atol <= 1.005 * width[0] and rtol <= 1.005 * width[1] for width in widths):
                decided.append((t, block.compared(key)))
                break
    return decided


def _upstream_passing_t(block: Block) -> list[int]:
    """Return the values of t at which upstream's tools consider all outputs close.

    Upstream's tools check every output listed in the `equal` line at the tolerances of its dtype.
    For dtypes without tolerances (complex dtypes, for example) they check `equal` itself. A t that
    the log lacks does not pass, even if a smaller t passes.
    """
    equal = block.compared("equal")
    dtypes = block.dtypes.get("eager", [])

    def passes(index: int, is_equal: float, t: int) -> bool:
        dtype = dtypes[index] if index < len(dtypes) else ""
        if dtype not in _UPSTREAM_DTYPES:
            return bool(is_equal)
        return bool(_item(block.compared(_keys_of(dtype)[t]), index))

    return [
        t
        for t in LOGGED_TOLERANCES
        if all(passes(index, is_equal, t) for index, is_equal in enumerate(equal))
    ]


def _item(values: Sequence[Any] | None, index: int) -> Any:
    """Return the item of `values` for an output, or None if the log lacks it."""
    return values[index] if values is not None and index < len(values) else None


@functools.cache
def _keys_of(dtype: str) -> dict[int, str]:
    """Return the comparison key of each t, excluding values of t that require equality."""
    pairs = {t: tolerances(t, dtype) for t in LOGGED_TOLERANCES}
    return {
        t: f"all_close_atol_{atol:.2E}_rtol_{rtol:.2E}" for t, (atol, rtol) in pairs.items() if atol
    }


def _sample_id(path: str) -> str:
    """Return the path relative to the last samples folder in it, or the whole path without one.

    >>> _sample_id("/data/GraphNet/paddle_samples/PaddleX/PicoDet-L/subgraph_7/")
    'PaddleX/PicoDet-L/subgraph_7'
    >>> _sample_id("/test/model/path1")
    'test/model/path1'
    """
    parts = [part for part in Path(path).parts if part != os.sep]
    roots = [index for index, part in enumerate(parts) if part in _SAMPLE_ROOTS]
    if roots and roots[-1] + 1 < len(parts):
        parts = parts[roots[-1] + 1 :]
    return "/".join(parts)
