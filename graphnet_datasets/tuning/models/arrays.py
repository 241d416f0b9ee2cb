"""Trained weights as array files, loaded without executing their contents."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...atomic import replaced
from ...decoding import load_json, read_npz
from ...errors import GraphNetError, TuningError, raises_only

_HEADER = "__header__"


def save_arrays(path: str | Path, arrays: Mapping[str, np.ndarray], header: dict[str, Any]) -> None:
    """Write arrays and a JSON header as `.npz`; the file appears complete or not at all."""
    text = np.frombuffer(json.dumps(header, sort_keys=True).encode(), np.uint8)
    with replaced(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **{_HEADER: text}, **arrays)  # type: ignore[arg-type]


@raises_only(TuningError)
def load_arrays(path: str | Path, kind: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and header of a file that `save_arrays` wrote for `kind`.

    Raises:
        TuningError: the file does not exist, cannot be read or is of another kind.
        DecodedSizeError: the arrays exceed the size limit of `decoding`.
    """
    arrays, header = _read(path, f"trained `{kind}`")
    if header.get("kind") != kind:
        raise TuningError(
            f"`{path}` contains a `{header.get('kind')}`, but a `{kind}` is needed. Load it "
            "with the class that saved it."
        )
    return arrays, header


@raises_only(TuningError)
def kind_of(path: str | Path) -> str:
    """Return the kind for which a file was written.

    Raises:
        TuningError: the file does not exist or cannot be read.
        DecodedSizeError: the arrays exceed the size limit of `decoding`.
    """
    _, header = _read(path, "trained model")
    return str(header.get("kind"))


def _read(path: str | Path, name: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    try:
        arrays = read_npz(path)
        header = load_json(arrays.pop(_HEADER).tobytes(), path)
        if not isinstance(header, dict):
            raise TuningError(
                f"The header of `{path}` is not an object. Train and save a model again."
            )
    except (OSError, ValueError, KeyError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        if isinstance(error, GraphNetError):
            raise
        raise TuningError(
            f"`{path}` cannot be read as a {name}: {type(error).__name__}: {error}. "
            "Write such files with the `save` method of a trained model."
        ) from error
    return arrays, header
