"""Loading a table imports no package to compare with it, and leaves Arrow's memory as it was."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from graphnet_datasets.storage.builders import short_lived_memory

LOAD = """
import sys
from graphnet_datasets import load_dataset
rows = load_dataset("graphnet", "cv", "train", filters=[("num_ops", "<", 40)])
assert len(rows)
from datasets import streaming
from datasets.utils.patching import patch_submodule
assert streaming.patch_submodule is patch_submodule
print(sorted({"scipy", "torch", "paddle", "matplotlib"} & set(sys.modules)))
"""


def printed_by(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.strip()


def test_loading_imports_neither_a_framework_nor_scipy() -> None:
    assert printed_by(LOAD) == "[]"


def test_the_usual_memory_is_back_after_a_failure() -> None:
    before = pa.default_memory_pool().backend_name
    with pytest.raises(KeyError), short_lived_memory():
        raise KeyError
    assert pa.default_memory_pool().backend_name == before


def test_a_pool_that_somebody_chose_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "mimalloc")
    before = pa.default_memory_pool().backend_name
    with short_lived_memory():
        assert pa.default_memory_pool().backend_name == before


def test_nothing_changes_for_who_is_in_it_already() -> None:
    before = pa.default_memory_pool().backend_name
    with short_lived_memory():
        within = pa.default_memory_pool().backend_name
        with short_lived_memory():
            assert pa.default_memory_pool().backend_name == within
        assert pa.default_memory_pool().backend_name == within
    assert pa.default_memory_pool().backend_name == before
