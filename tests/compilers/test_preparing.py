"""What a server of runs imports and finds out for the compilers that it is asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

_CODE = """
import json, sys, threading
from graphnet_datasets.benchmark.child import server

def serve(work, seldom):
    print(json.dumps({
        "inductor": "torch._inductor.compile_fx" in sys.modules,
        "dynamo": "torch._dynamo" in sys.modules,
        "exporter": "torch.onnx._internal.exporter._core" in sys.modules,
        "threads": threading.active_count(),
    }))

server.serve = serve
server.main()
"""


def prepared_for(*compilers: str) -> dict[str, object]:
    """Return what a server for these compilers has imported when it begins to serve."""
    environment = {
        **os.environ,
        "GRAPHNET_DATASETS_FRAMEWORK": "torch",
        "GRAPHNET_DATASETS_COMPILERS": ",".join(compilers),
        "OPENBLAS_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", _CODE], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_eager_and_torchscript_need_nothing_of_the_framework_s_compiler() -> None:
    assert prepared_for("eager", "torchscript") == {
        "inductor": False,
        "dynamo": False,
        "exporter": False,
        "threads": 1,
    }


def test_what_onnxruntime_imports_is_there_before_the_fork() -> None:
    pytest.importorskip("onnxscript", reason="onnxscript is not installed: [onnxruntime]")
    assert prepared_for("eager", "onnxruntime") == {
        "inductor": False,
        "dynamo": True,
        "exporter": True,
        "threads": 1,
    }


def test_a_compiler_of_somebody_else_finds_all_imported() -> None:
    assert prepared_for("eager", "tests.candidates:correct") == {
        "inductor": True,
        "dynamo": True,
        "exporter": False,
        "threads": 1,
    }
