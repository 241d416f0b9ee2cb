"""Run the original text of a GraphNet sample, in a separate process, to compare with ours.

Only tests do this: the library never executes a sample's text. Inputs and outputs go through
`.npz` files without pickle; as a script, this file is the other process.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

_CUDA = re.compile(r"""device\(type=["']cuda["'](, index=\d+)?\)|["']cuda(:\d+)?["']""")


class OriginalFailedError(Exception):
    """The original text itself does not run here."""


class Originals:
    """A process that runs original texts, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Originals:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def run(self, model: Path, inputs: Mapping[str, Any], seed: int) -> list[Any]:
        """Return the flat outputs of `model`, called with `inputs` by its own argument names.

        Raises:
            OriginalFailedError: the text raises an exception.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        given, returned = self.folder / "inputs.npz", self.folder / "outputs.npz"
        write_values(list(inputs.values()), given)
        job = {
            "model": str(model),
            "names": list(inputs),
            "seed": seed,
            "given": str(given),
            "returned": str(returned),
        }
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline() or '"the process died"')
        if answer != "done":
            raise OriginalFailedError(answer)
        return read_values(returned)


def write_values(values: Sequence[Any], path: Path) -> None:
    """Write tensors as raw bytes with their dtypes and shapes, and numbers as they are."""
    arrays: dict[str, np.ndarray] = {}
    notes: list[Any] = []
    for index, value in enumerate(values):
        if isinstance(value, torch.Tensor):
            plain = value.detach().contiguous().cpu()
            arrays[str(index)] = plain.reshape(-1).view(torch.uint8).numpy()
            notes.append([str(plain.dtype).removeprefix("torch."), list(plain.shape)])
        else:
            notes.append(value)
    np.savez(path, allow_pickle=False, notes=np.array(json.dumps(notes)), **arrays)


def read_values(path: Path) -> list[Any]:
    """Return what `write_values` wrote."""
    with np.load(path, allow_pickle=False) as stored:
        notes = json.loads(str(stored["notes"]))
        values: list[Any] = []
        for index, note in enumerate(notes):
            if not isinstance(note, list):
                values.append(note)
                continue
            dtype, shape = note
            data = torch.from_numpy(stored[str(index)].copy())
            values.append(data.view(getattr(torch, dtype)).reshape(shape))
    return values


def flatten(outputs: Any) -> list[Any]:
    """Return the leaves of nested outputs, left to right."""
    if isinstance(outputs, dict):
        return flatten(list(outputs.values()))
    if isinstance(outputs, list | tuple):
        return [leaf for item in outputs for leaf in flatten(item)]
    return [outputs]


def bits(value: Any) -> Any:
    """Return what is equal for two values only if dtype, shape and all bits are."""
    if not isinstance(value, torch.Tensor):
        return type(value).__name__, repr(value)
    plain = value.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
    return value.dtype, tuple(value.shape), plain.tobytes()


def _run(job: Mapping[str, Any], copies: Path) -> None:
    # The texts were captured on a GPU; here they run on the CPU, as `device="cpu"` has ours do.
    copies.write_text(_CUDA.sub("torch.device('cpu')", Path(job["model"]).read_text()))
    spec = importlib.util.spec_from_file_location("original_model", copies)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    values = read_values(Path(job["given"]))
    torch.manual_seed(job["seed"])
    with torch.no_grad():
        outputs = module.GraphModule()(**dict(zip(job["names"], values, strict=True)))
    write_values(flatten(outputs), Path(job["returned"]))


def _serve() -> None:
    torch.set_num_threads(1)
    for line in sys.stdin:
        job = json.loads(line)
        try:
            _run(job, Path(job["returned"]).with_name("original_model.py"))
            answer = "done"
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"[:2000]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
