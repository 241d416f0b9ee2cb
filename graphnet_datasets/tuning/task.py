"""A task: one fused operator of real graphs on one target, with how often the graphs call it.

Nothing here knows TVM. The workload and the target are its JSON texts, kept as they are: data of
strangers that only an isolated worker parses.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

from ..errors import TuningError


@dataclasses.dataclass(frozen=True, slots=True)
class TaskSource:
    """A graph that a task was cut from, and how often that graph calls it."""

    sample_id: str
    graph_hash: str
    count: int


def task_key(workload_json: str, target_json: str) -> str:
    """Return the id of a task, 32 hexadecimal digits: blake2b of the workload's and target's JSON.

    The target belongs to it, its number of threads too: what is fast on one machine is not on
    another.

    >>> task_key("{}", '{"kind": "llvm"}') == task_key("{}", '{"kind": "cuda"}')
    False
    >>> len(task_key("{}", "{}"))
    32
    """
    digest = hashlib.blake2b(digest_size=16)
    for text in (workload_json, target_json):
        encoded = text.encode()
        # The length in front: no two pairs of texts run together to the same bytes.
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return digest.hexdigest()


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """One row of `tuning_tasks`; the fields have the names of its columns.

    `arg_shapes` and `arg_dtypes` are of the workload's arguments, the outputs last. `flops` are
    floating point operations of one call, `bytes` what one call reads and writes at least.
    `family` is the kind of operator that results are grouped and held out by (`matmul`, `conv2d`,
    `softmax` …); `pipeline` names the passes that the task was cut behind.

    Raises:
        TuningError: the arguments' shapes and dtypes differ in number, or a figure is negative.

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
                f"The task `{self.task_name}` has {len(self.arg_shapes)} shapes of arguments and "
                f"{len(self.arg_dtypes)} dtypes. Each argument has one of both."
            )
        if self.flops < 0 or self.bytes < 0:
            raise TuningError(
                f"The task `{self.task_name}` has {self.flops} flops and {self.bytes} bytes; "
                "neither can be negative."
            )

    @property
    def weight(self) -> int:
        """How often all its graphs call it: w_i of the sum of w_i * latency_i; 1 without any."""
        return sum(source.count for source in self.sources) or 1

    def to_row(self) -> dict[str, Any]:
        """Return the columns of `tuning_tasks`, `schema_version` left to who writes the table."""
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
        """Return the task of a row of `tuning_tasks`; other columns are not looked at.

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
            values["sources"] = tuple(TaskSource(**each) for each in row.get("sources") or ())
            values["tool_versions"] = {
                str(each["name"]): str(each["version"]) for each in row.get("tool_versions") or ()
            }
            return cls(**values)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, TuningError):
                raise
            raise TuningError(
                f"A row of `tuning_tasks` is not a task: {type(error).__name__}: {error}. Write "
                "rows with `Task.to_row`."
            ) from error
