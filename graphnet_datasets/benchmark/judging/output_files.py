"""Stored outputs of runs, for comparisons with another device or version.

An uncompressed `.npz` file next to the records contains `description` (JSON: the run and its
inputs, and the dtype, shape and hash of each output) and `output_0`, `output_1`, … with the raw
elements. Files may come from untrusted sources: nothing is unpickled, sizes are checked before
memory is allocated, and hashes are checked before elements are used.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from ...atomic import write_bytes
from ...decoding import load_json
from ...errors import RunError, raises_only
from ...inputs.storage import STORAGE
from ...sample.vocabulary import ITEM_SIZE_BYTES
from ..executors.jobs import SampleJob
from ..handover import MAX_DIMENSIONS, MAX_OUTPUTS
from ..records.records import sample_digest
from .correctness import Output

OUTPUTS_NAME = "outputs"
_DESCRIPTION = "description.npy"
_MAX_DESCRIPTION_BYTES = 2**24
_MAX_HEADER_BYTES = 2**16


class OutputStore:
    """The outputs of runs below `path`, a directory of run records; one file per run."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path, OUTPUTS_NAME)

    def __contains__(self, run_id: str) -> bool:
        return self._file(run_id).exists()

    def save(self, job: SampleJob, record: Mapping[str, Any], outputs: Sequence[Output]) -> None:
        """Store the outputs of one run.

        Raises:
            RunError: the outputs cannot be written.
        """
        buffer = io.BytesIO()
        write_outputs(buffer, describe_run(job, record), outputs)
        self.put(record["run_id"], buffer.getbuffer())

    def put(self, run_id: str, data: bytes | memoryview) -> None:
        """Atomically store the bytes that `write_outputs` wrote for a run.

        Raises:
            RunError: the file cannot be written.
        """
        path = self._file(run_id)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_bytes(path, data, is_durable=True)
        except OSError as error:
            raise RunError(
                f"The outputs of a run cannot be written to `{self.path}`: {error.strerror}."
            ) from error

    def load(self, run_id: str) -> tuple[dict[str, Any], list[Output]]:
        """Return the description of a run and its outputs.

        Raises:
            RunError: there are no outputs, or the file was not written by `save`.
        """
        path = self._file(run_id)
        try:
            return _read_outputs_file(path)
        except FileNotFoundError as error:
            raise RunError(
                f"The outputs of the run `{run_id}` are not at `{path}`. Create them with "
                f"`graphnet run … --reference {self.path.parent}`."
            ) from error
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
            raise RunError(
                f"`{path}` does not contain the outputs of a run: {error}. Delete it and create it "
                f"again with `graphnet run … --reference {self.path.parent}`."
            ) from error

    def _file(self, run_id: str) -> Path:
        if not (run_id.isascii() and run_id.isalnum()):  # ids of untrusted tables must not be paths
            raise RunError(f"`{run_id}` is not the id of a run.")
        return self.path / f"{run_id}.npz"


def describe_run(job: SampleJob, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a run that determine its outputs."""
    names = ("run_id", "sample_id", "compiler", "seed", "input_mode", "weights")
    return {name: record[name] for name in names} | {"sample_digest": sample_digest(job.sample)}


def write_outputs(file: BinaryIO, run: Mapping[str, Any], outputs: Sequence[Output]) -> None:
    """Write outputs and the description of their run to a seekable file."""
    described = {
        **run,
        "outputs": [
            {
                "dtype": output.dtype,
                "shape": list(output.elements.shape),
                "hash": _hash(output.elements),
            }
            for output in outputs
        ],
    }
    text = np.frombuffer(json.dumps(described, sort_keys=True).encode(), np.uint8)
    arrays = {f"output_{index}.npy": output.elements for index, output in enumerate(outputs)}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, elements in {_DESCRIPTION: text, **arrays}.items():
            with archive.open(name, "w", force_zip64=True) as entry:
                contiguous = np.require(elements, requirements="C")
                np.lib.format.write_array(entry, contiguous, (1, 0), allow_pickle=False)


@raises_only(RunError)
def read_outputs_file(path: Path) -> tuple[dict[str, Any], list[Output]]:
    """Return the description and the outputs in a file that `write_outputs` wrote.

    Raises:
        RunError: the file has another format or cannot be read.
    """
    return _read_outputs_file(path)


def _read_outputs_file(path: Path) -> tuple[dict[str, Any], list[Output]]:
    """Read a file that `write_outputs` wrote.

    Raises:
        OSError: the file cannot be read.
        ValueError, KeyError, TypeError, zipfile.BadZipFile: the file has another format.
    """
    size = path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        if any(
            entry.compress_type != zipfile.ZIP_STORED or entry.file_size > size
            for entry in archive.infolist()
        ):
            raise ValueError("An entry is compressed or larger than the file")
        if archive.getinfo(_DESCRIPTION).file_size > _MAX_DESCRIPTION_BYTES:
            raise ValueError("The description is too long")
        run = load_json(_read_array(archive, _DESCRIPTION).tobytes(), path)
        described = run.pop("outputs")
        if not isinstance(described, list) or len(described) > MAX_OUTPUTS:
            raise ValueError(f"Expected a list of at most {MAX_OUTPUTS} output descriptions")
        outputs = []
        for index, entry in enumerate(described):
            dtype, shape = entry["dtype"], entry["shape"]
            if dtype not in STORAGE or not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS:
                raise ValueError(f"Output {index} has an unknown dtype or shape")
            if not all(type(length) is int and 0 <= length < 2**48 for length in shape):
                raise ValueError(f"Output {index} has an unknown shape")
            if math.prod(shape) * ITEM_SIZE_BYTES[dtype] > size:
                raise ValueError(f"Output {index} is larger than the file")
            elements = _read_array(archive, f"output_{index}.npy")
            if elements.shape != tuple(shape) or elements.dtype != np.dtype(STORAGE[dtype]):
                raise ValueError(f"Output {index} does not match its description")
            if _hash(elements) != entry["hash"]:
                raise ValueError(f"Output {index} does not match its recorded hash")
            outputs.append(Output(dtype, elements))
    return run, outputs


def _read_array(archive: zipfile.ZipFile, name: str) -> npt.NDArray:
    """Read one array; its header must match the number of bytes that follow."""
    entry = archive.getinfo(name)
    with archive.open(entry) as file:
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError("An array has an unsupported format version")
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(
            file, max_header_size=_MAX_HEADER_BYTES
        )
        if dtype.hasobject or is_fortran:
            raise ValueError("An array contains objects or is in Fortran order")
        data = file.read()
    if math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError("The size of an array does not match its header")
    return np.frombuffer(data, dtype).reshape(shape)


def _hash(elements: npt.NDArray) -> str:
    flat = np.ascontiguousarray(elements).reshape(-1).view(np.uint8)
    return hashlib.blake2b(flat.data, digest_size=16).hexdigest()
