"""Tuning tasks: a fused operator on one target, and how often graphs call it.

This module does not depend on TVM. Workload and target are untrusted JSON strings, stored verbatim
and parsed only in an isolated worker.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

from ..errors import TuningError


@dataclasses.dataclass(frozen=True, slots=True)
class TaskSource:
    """A graph that contains the task, and how often that graph calls it."""

    sample_id: str
    graph_hash: str
    count: int


def task_key(workload_json: str, target_json: str) -> str:
    """Return the id of a task: the blake2b hash of its workload and target, 32 hex digits.

    The hash includes the target and its number of threads, because a schedule that is fast on one
    machine may be slow on another.

    >>> task_key("{}", '{"kind": "llvm"}') == task_key("{}", '{"kind": "cuda"}')
    False
    >>> len(task_key("{}", "{}"))
    32
    """
    digest = hashlib.blake2b(digest_size=16)
    for text in (workload_json, target_json):
        encoded = text.encode()
        # Length prefixes keep different pairs of strings from concatenating to the same bytes.
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return digest.hexdigest()


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """One row of `tuning_tasks`; the fields have the names of its columns.

    `arg_shapes` and `arg_dtypes` describe the workload's arguments, outputs last. `flops` counts
    floating-point operations per call, `bytes` the minimum memory traffic per call. Results are
    grouped and held out by `family`, the kind of operator (`matmul`, `conv2d`, `softmax` …).
    `pipeline` names the passes that run before tasks are extracted.

    Raises:
        TuningError: the numbers of shapes and dtypes differ, or `flops` or `bytes` is negative.

    >>> task = Task(
    ...     task_id=task_key("{}", "{}"),
    ...     workload_json="{}",
    ...     target_json="{}",
    ...     task_name="fused_matmul_relu",
    ...     family="matmul",
    ...     arg_shapes=((8, 16), (16, 4), (8, 4)),
    ...     arg_dtypes=("float32",) * 3,
    ...     flops=1024,
    ...     bytes=896,
    ...     sources=(TaskSource("timm/resnet18", "0f", 3), TaskSource("timm/vit", "1e", 2)),
    ... )
    >>> task.weight
    5
    >>> Task.from_row(task.to_row()) == task
    True
    """

    task_id: str
    workload_json: str = dataclasses.field(repr=False)
    target_json: str = dataclasses.field(repr=False)
    task_name: str
    family: str
    arg_shapes: tuple[tuple[int, ...], ...]
    arg_dtypes: tuple[str, ...]
    flops: int = 0
    bytes: int = 0
    sources: tuple[TaskSource, ...] = ()
    structural_hash: str = ""
    hash_version: str = ""
    pipeline: str = ""
    tool_versions: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if len(self.arg_shapes) != len(self.arg_dtypes):
            raise TuningError(
                f"The task `{self.task_name}` has {len(self.arg_shapes)} argument shapes and "
                f"{len(self.arg_dtypes)} dtypes. Pass one shape and one dtype per argument."
            )
        if self.flops < 0 or self.bytes < 0:
            raise TuningError(
                f"The task `{self.task_name}` has {self.flops} flops and {self.bytes} bytes. "
                "Both must be at least 0."
            )

    @property
    def weight(self) -> int:
        """Number of calls over all sources (w_i in the sum of w_i * latency_i), at least 1."""
        return sum(source.count for source in self.sources) or 1

    def to_row(self) -> dict[str, Any]:
        """Return the columns of `tuning_tasks` except `schema_version`, which the writer adds."""
        row = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        row["arg_shapes"] = [list(shape) for shape in self.arg_shapes]
        row["arg_dtypes"] = list(self.arg_dtypes)
        row["sources"] = [dataclasses.asdict(source) for source in self.sources]
        row["tool_versions"] = [
            {"name": name, "version": version} for name, version in self.tool_versions.items()
        ]
        return row

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Task:
        """Return the task of a row of `tuning_tasks`; other columns are ignored.

        Raises:
            TuningError: a column is missing or has another type.
        """
        try:
            values = {
                field.name: row[field.name]
                for field in dataclasses.fields(cls)
                if row.get(field.name) is not None
            }
            values["arg_shapes"] = tuple(tuple(map(int, shape)) for shape in row["arg_shapes"])
            values["arg_dtypes"] = tuple(map(str, row["arg_dtypes"]))
            values["sources"] = tuple(TaskSource(**item) for item in row.get("sources") or ())
            values["tool_versions"] = {
                str(item["name"]): str(item["version"]) for item in row.get("tool_versions") or ()
            }
            return cls(**values)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, TuningError):
                raise
            raise TuningError(
                f"A row of `tuning_tasks` is not a task: {type(error).__name__}: {error}. Write "
                "rows with `Task.to_row`."
            ) from error
