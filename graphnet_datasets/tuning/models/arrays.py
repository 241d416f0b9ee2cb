"""Trained weights as files of arrays: read without running anything that is in them."""

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
    """Write arrays and a JSON header as `.npz`; the file appears whole or not at all."""
    text = np.frombuffer(json.dumps(header, sort_keys=True).encode(), np.uint8)
    with replaced(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **{_HEADER: text}, **arrays)  # type: ignore[arg-type]


@raises_only(TuningError)
def load_arrays(path: str | Path, kind: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the header of a file that `save_arrays` wrote for `kind`.

    Raises:
        TuningError: there is no such file, or it is of another kind.
        DecodedSizeError: its arrays take more than the limit of `decoding`.
    """
    try:
        arrays = read_npz(path)
        header = load_json(arrays.pop(_HEADER).tobytes(), path)
        if header.get("kind") != kind:
            raise TuningError(f"`{path}` holds `{header.get('kind')}`, not `{kind}`.")
    except (OSError, ValueError, KeyError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        if isinstance(error, GraphNetError):
            raise
        raise TuningError(
            f"`{path}` cannot be read as a trained `{kind}`: {type(error).__name__}: {error}. "
            "Train it and save it with its own `save`."
        ) from error
    return arrays, header
