"""Outputs on disk: back as they were, and refused when they are not what was written."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphnet_datasets.benchmark.judging.correctness import Output
from graphnet_datasets.benchmark.judging.output_files import (
    OutputStore,
    read_outputs_file,
    write_outputs,
)
from graphnet_datasets.errors import RunError
from graphnet_datasets.inputs.storage import STORAGE

OUTPUTS = [
    Output(dtype, np.arange(24).astype(STORAGE[dtype]).reshape(2, 3, 4)) for dtype in STORAGE
] + [
    Output("float32", np.array(3.5, np.float32)),
    Output("int64", np.empty((0, 4), np.int64)),
    Output("float32", np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))),
]


def packed(outputs: list[Output]) -> bytes:
    buffer = io.BytesIO()
    write_outputs(buffer, {"sample_id": "x"}, outputs)
    return buffer.getvalue()


def rewritten(data: bytes, changes: dict[str, bytes], compression: int = 0) -> bytes:
    """Return an archive with some of its entries replaced."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(buffer, "w", compression) as new,
    ):
        for name in old.namelist():
            new.writestr(name, changes.get(name, old.read(name)))
    return buffer.getvalue()


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, (1, 0), allow_pickle=True)
    return buffer.getvalue()


def described(**changes: Any) -> bytes:
    with zipfile.ZipFile(io.BytesIO(packed(ONE))) as archive:
        run = json.loads(np.load(io.BytesIO(archive.read("description.npy"))).tobytes())
    run["outputs"][0] |= changes
    return npy(np.frombuffer(json.dumps(run).encode(), np.uint8))


ONE = [Output("float32", np.arange(6, dtype=np.float32).reshape(2, 3))]


def test_outputs_of_every_dtype_come_back_bit_for_bit(tmp_path: Path) -> None:
    store = OutputStore(tmp_path)
    assert "a1" not in store
    store.put("a1", packed(OUTPUTS))
    assert "a1" in store
    run, outputs = store.load("a1")
    assert run == {"sample_id": "x"}
    for before, after in zip(OUTPUTS, outputs, strict=True):
        assert after.dtype == before.dtype
        assert after.elements.shape == before.elements.shape
        assert after.elements.tobytes() == before.elements.tobytes()
    assert [path.name for path in (tmp_path / "outputs").iterdir()] == ["a1.npz"]


def test_numpy_reads_the_file_without_pickle(tmp_path: Path) -> None:
    store = OutputStore(tmp_path)
    store.put("a1", packed(ONE))
    with np.load(tmp_path / "outputs" / "a1.npz", allow_pickle=False) as arrays:
        assert arrays["output_0"].tolist() == ONE[0].elements.tolist()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"nothing", "File is not a zip file"),
        (packed(ONE)[:-40], "File is not a zip file"),
        (
            rewritten(packed(ONE), {}, zipfile.ZIP_DEFLATED),
            "An entry is compressed or larger than the file",
        ),
        (
            rewritten(packed(ONE), {"output_0.npy": npy(np.array([{}], object))}),
            "An array contains objects or is in Fortran order",
        ),
        (
            rewritten(packed(ONE), {"output_0.npy": npy(ONE[0].elements + 1)}),
            "Output 0 does not match its recorded hash",
        ),
        (
            rewritten(packed(ONE), {"output_0.npy": npy(ONE[0].elements)[:-4]}),
            "The size of an array does not match its header",
        ),
        (
            rewritten(packed(ONE), {"output_0.npy": npy(ONE[0].elements.reshape(3, 2))}),
            "Output 0 does not match its description",
        ),
        (
            rewritten(packed(ONE), {"description.npy": described(shape=[2**40, 3])}),
            "Output 0 is larger than the file",
        ),
        (
            rewritten(packed(ONE), {"description.npy": described(dtype="object")}),
            "Output 0 has an unknown dtype or shape",
        ),
        (
            rewritten(packed(ONE), {"description.npy": described(shape=[-1, 3])}),
            "Output 0 has an unknown shape",
        ),
    ],
)
def test_a_file_that_was_not_written_so_is_refused(
    tmp_path: Path, data: bytes, message: str
) -> None:
    store = OutputStore(tmp_path)
    store.put("a1", data)
    path = tmp_path / "outputs" / "a1.npz"
    with pytest.raises(RunError) as caught:
        store.load("a1")
    assert str(caught.value) == (
        f"`{path}` does not contain the outputs of a run: {message}. Delete it and create it again "
        f"with `graphnet run … --reference {tmp_path}`."
    )


def test_outputs_that_are_not_there_and_ids_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(RunError) as caught:
        OutputStore(tmp_path).load("a1")
    assert str(caught.value).startswith("The outputs of the run `a1` are not at ")
    with pytest.raises(RunError) as caught:
        OutputStore(tmp_path).load("../a1")
    assert str(caught.value) == "`../a1` is not the id of a run."


def test_every_cut_of_a_file_is_refused(tmp_path: Path) -> None:
    data, path = packed(ONE), tmp_path / "cut.npz"
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        with pytest.raises(RunError):
            read_outputs_file(path)
