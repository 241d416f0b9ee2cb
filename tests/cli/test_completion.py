"""Completion of values in bash and zsh, by the program that the shells start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

GRAPHNET = Path(sys.executable).with_name("graphnet")


def completions(shell: str, *words: str) -> list[str]:
    """Return the suggestions of a shell for a command line whose last word is incomplete."""
    line = " ".join(["graphnet", *words])
    variables = {
        "_GRAPHNET_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words)),
        "_TYPER_COMPLETE_ARGS": line,
    }
    done = subprocess.run(
        [str(GRAPHNET)], env={**os.environ, **variables}, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run", "--compiler", "induc"], ["inductor"]),
        (["run", "--task", "s"], ["scientific"]),
        (["list", "--source", "pytorch/v"], ["pytorch/vision"]),
        (["score", "runs", "--framework", "pa"], ["paddle"]),
        (["kernels", "fusible", "--found-by", "inductor_"], ["inductor_cuda"]),
        (["run", "torchvision/resnet1"], ["torchvision/resnet18", "torchvision/resnet18-dynamic"]),
        (["show", "torch/resnet-18"], ["torch/resnet-18"]),
        (["list", "compiler_"], ["compiler_bugs"]),
        (["tune", "cv", "--allocator", "dyna"], ["dynatune"]),
    ],
    ids=str,
)
def test_bash_completes_values(words: list[str], expected: list[str]) -> None:
    assert {*expected} <= {*completions("bash", *words)}


def test_zsh_completes_the_same() -> None:
    assert "inductor" in " ".join(completions("zsh", "run", "--compiler", "induc"))
    assert "scientific" in " ".join(completions("zsh", "list", "--task", "s"))


def test_nothing_is_completed_where_nothing_fits() -> None:
    assert completions("bash", "run", "--task", "vision") == []
