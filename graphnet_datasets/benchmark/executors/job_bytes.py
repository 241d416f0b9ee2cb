"""Serialized jobs and results, for workers reached over a network.

Only Arrow and JSON are used. Results may come from a process that ran a candidate, so nothing is
unpickled.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...arrow_messages import read_batch, read_messages
from ...errors import RunError
from ...schema import GRAPHS_SCHEMA, RUNS_SCHEMA, sample_from_row
from ..records.records import rows_to_table
from .jobs import CandidateCompiler, SampleJob

_CANDIDATES = b"graphnet_datasets.candidates"
_RESULT_SCHEMA = pa.schema(
    [*RUNS_SCHEMA, pa.field("log", pa.string()), pa.field("outputs_file", pa.large_binary())]
)


@dataclasses.dataclass(frozen=True)
class Result:
    """A record, the printed output of a failed run, and the run's outputs if they are stored."""

    record: dict[str, Any]
    log: str | None = None
    outputs: bytes | None = None


def pack_job(job: SampleJob) -> bytes:
    """Return a job as one Arrow table: the sample's row, with the candidates as metadata."""
    table = pa.Table.from_pylist([dict(job.row)], schema=GRAPHS_SCHEMA)
    candidates = [
        {"run_id": run_id, **dataclasses.asdict(candidate), "options": dict(candidate.options)}
        for run_id, candidate in job.candidates
    ]
    metadata = {**(table.schema.metadata or {}), _CANDIDATES: json.dumps(candidates).encode()}
    return _to_bytes(table.replace_schema_metadata(metadata))


def unpack_job(data: bytes) -> SampleJob:
    """Return the job that `pack_job` serialized."""
    with pa.ipc.open_stream(data) as reader:
        table = reader.read_all()
    (row,) = table.to_pylist()
    candidates = [
        (candidate.pop("run_id"), CandidateCompiler(**candidate))
        for candidate in json.loads((table.schema.metadata or {})[_CANDIDATES])
    ]
    return SampleJob(sample_from_row(row), row, candidates)


def pack_results(results: Sequence[Result]) -> bytes:
    """Return the results of a job as one Arrow table."""
    table = rows_to_table([result.record for result in results])
    table = table.append_column("log", pa.array([result.log for result in results], pa.string()))
    outputs = pa.array([result.outputs for result in results], pa.large_binary())
    return _to_bytes(table.append_column("outputs_file", outputs))


def unpack_results(data: Any, expected: Mapping[str, str]) -> list[Result]:
    """Return the results that `pack_results` serialized.

    `expected` maps each requested run id to its sample's id. At least one of them must be present.

    Raises:
        RunError: the bytes are invalid, or contain results of other runs.
    """
    try:
        if not isinstance(data, bytes):
            raise TypeError(f"Expected bytes, got a `{type(data).__name__}`")
        schema, messages = read_messages(pa.py_buffer(data))
        batches = [
            read_batch(message, schema, "the results", most_bytes=len(data)) for message in messages
        ]
        table = pa.Table.from_batches(batches, schema)
        if table.schema.names != _RESULT_SCHEMA.names:
            raise TypeError("The columns differ from those of run records")
        rows = table.cast(_RESULT_SCHEMA.with_metadata(table.schema.metadata)).to_pylist()
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise RunError(f"A worker did not answer with run records ({error}).") from error
    sample_ids = {row["run_id"]: row["sample_id"] for row in rows}
    if not rows or len(sample_ids) != len(rows) or not sample_ids.items() <= dict(expected).items():
        raise RunError("A worker returned records of other runs.")
    return [Result(log=row.pop("log"), outputs=row.pop("outputs_file"), record=row) for row in rows]


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()
