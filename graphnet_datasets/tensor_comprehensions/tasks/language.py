"""The entry of this language in the registry of `graphnet_datasets.tuning`."""

from __future__ import annotations

import importlib.util

from ...errors import MissingExtraError
from ...tuning.languages import Language
from . import KIND


def _environment(threads: int) -> dict[str, str]:
    return {"OMP_NUM_THREADS": str(threads)}


def _check() -> None:
    if importlib.util.find_spec("islpy") is None:
        raise MissingExtraError("islpy", "tc", "Tuning tensor comprehensions")


LANGUAGE = Language(KIND, f"{__package__}.worker", _environment, _check)
