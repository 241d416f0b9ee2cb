"""What a server of runs imports and finds out for the compilers that it is asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets.compilers import find_entry
from graphnet_datasets.user_cache import cache_directory

_CODE = """
import json, sys, threading
from pathlib import Path
from graphnet_datasets.benchmark.child import worker

seldom = worker.prepare()
print(json.dumps({TOLD}))
"""

_IMPORTED = """
    "inductor": "torch._inductor.compile_fx" in sys.modules,
    "dynamo": "torch._dynamo" in sys.modules,
    "exporter": "torch.onnx._internal.exporter._core" in sys.modules,
    "threads": threading.active_count(),
"""

_CODECACHE = 'sys.modules["torch._inductor.codecache"]'
_HEADERS = f"""
    "directory": {_CODECACHE}._HEADER_DIR,
    "headers": [each.name for each in Path({_CODECACHE}._HEADER_DIR).glob("*.gch")],
    "known": {_CODECACHE}._precompile_header.cache_info().currsize,
    "threads": threading.active_count(),
"""


def told_by_server(told: str, *compilers: str, **variables: str) -> dict[str, Any]:
    """Return what a server for these compilers tells of itself when it begins to serve."""
    environment = {
        **os.environ,
        "GRAPHNET_DATASETS_FRAMEWORK": "torch",
        "GRAPHNET_DATASETS_COMPILERS": ",".join(compilers),
        "OPENBLAS_NUM_THREADS": "1",
        **variables,
    }
    code = _CODE.replace("TOLD", told)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def prepared_for(*compilers: str) -> dict[str, object]:
    """Return what a server for these compilers has imported when it begins to serve."""
    return told_by_server(_IMPORTED, *compilers)


def test_eager_and_torchscript_need_nothing_of_the_framework_s_compiler() -> None:
    assert prepared_for("eager", "torchscript") == {
        "inductor": False,
        "dynamo": False,
        "exporter": False,
        "threads": 1,
    }


@pytest.mark.slow
def test_imports_of_onnxruntime_happen_before_the_fork() -> None:
    pytest.importorskip("onnxscript", reason="onnxscript is not installed: [onnxruntime]")
    assert prepared_for("eager", "onnxruntime") == {
        "inductor": False,
        "dynamo": True,
        "exporter": True,
        "threads": 1,
    }


@pytest.mark.slow
def test_a_compiler_of_somebody_else_finds_all_imported() -> None:
    assert prepared_for("eager", "tests.candidates:correct") == {
        "inductor": True,
        "dynamo": True,
        "exporter": False,
        "threads": 1,
    }


def headers_for_inductor(**environment: str) -> dict[str, Any]:
    """Return what a server for inductor knows of the header of its kernels."""
    is_available, reason = find_entry("inductor").load().is_available()
    if not is_available:
        pytest.skip(reason)
    return told_by_server(_HEADERS, "eager", "inductor", **environment)


@pytest.mark.slow
def test_the_header_of_inductor_s_kernels_is_compiled_before_the_fork_and_kept() -> None:
    found = headers_for_inductor()
    assert Path(found["directory"]) == cache_directory("inductor_headers")
    assert found["headers"]
    assert found["known"] == 1
    assert found["threads"] == 1


@pytest.mark.slow
def test_where_there_is_no_place_for_the_header_inductor_keeps_it_as_ever(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    found = headers_for_inductor(XDG_CACHE_HOME=str(tmp_path / "file"))
    assert "graphnet_datasets" not in found["directory"]
    assert found["known"] == 0
