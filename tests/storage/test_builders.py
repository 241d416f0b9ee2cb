"""Loading a table imports no package for the sake of comparing with it."""

from __future__ import annotations

import subprocess
import sys

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
