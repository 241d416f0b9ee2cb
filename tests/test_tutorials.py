"""The code of the tutorials runs as it is printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from graphnet_datasets.compilers.native import build_library, nvcc

ROOT = Path(__file__).parents[1]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"^```(python|console|cpp|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"(?:#|//) (\w+\.(?:py|cpp|tc))\n")
"""The first line of a block that is a file to save."""


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_runs_as_printed(page: Path, tmp_path: Path) -> None:
    binaries = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": binaries, "PYTHONPATH": str(ROOT)}
    script = ""
    for language, text in BLOCK.findall(page.read_text()):
        name = FILE.match(text)
        if name:
            (tmp_path / name[1]).write_text(text)
            continue
        if language == "python":
            script += text
            (tmp_path / "tutorial.py").write_text(script)
            command = [sys.executable, "tutorial.py"]
        else:
            lines = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
            command = ["bash", "-ec", "\n".join(lines)]
        process = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert process.returncode == 0, f"{text}\n{process.stdout}\n{process.stderr}"


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.skipif(nvcc() is None, reason="needs nvcc: pip install graphnet-datasets[kernels]")
def test_cuda_of_a_tutorial_compiles(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "tutorials" / "solve_a_problem.md").read_text()
    (text,) = re.findall(r"^```cuda\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    path = tmp_path / "kernel.cu"
    path.write_text(text)
    library, log = build_library(path, {"op3_arg1": 1e-6})
    assert library.exists() and log == ""
