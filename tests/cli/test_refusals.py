"""Refusals that come before a framework, a compiler or a dataset is loaded."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from graphnet_datasets.frameworks.builds import find_build_problem
from tests.tables import write_dataset

SCRIPT = """
import sys

heavy = ("torch", "paddle", "datasets", "pandas", "tvm", "onnxruntime", "openvino", "jax")
started = []
sys.addaudithook(lambda event, details: started.append(event) if event == "subprocess.Popen" else 0)

from typer.testing import CliRunner
from graphnet_datasets.cli.app import app

result = CliRunner().invoke(app, sys.argv[1:])
print(result.exit_code, [name for name in heavy if name in sys.modules], started)
print(result.output)
"""


def refuse(*words: str, cwd: Path) -> tuple[str, str]:
    """Return the state of a refused command (status, modules, processes), and its message."""
    command = [sys.executable, "-c", SCRIPT, *words]
    process = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True)
    state, _, message = process.stdout.partition("\n")
    return state, message.strip()


def _is_cpu_build() -> bool:
    return find_spec("torch") is not None and find_build_problem(["torch"], "cuda") != ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--device gpu0", "`gpu0` is not a device. Use `cpu`, `cuda`, `cuda:1`, or several"),
        ("--device cuda:0,cuda:0", "`cuda:0,cuda:0` contains a device twice. Remove one of them."),
        ("--compiler inductr", "There is no compiler `inductr` for torch. Did you mean `inductor`"),
        ("--compiler nofile.py:Mine", "There is no file `nofile.py` of the compiler"),
        ("--weights both", "The setting `weights` is 'both'; "),
        ("--timeout judge=3", "There is no phase `judge`. "),
        ("--option x", "`x` is not a compiler option. "),
    ],
)
def test_options_and_names_are_checked_first(words: str, message: str, tmp_path: Path) -> None:
    state, text = refuse("run", "cv", *words.split(), cwd=tmp_path)
    assert state == "1 [] []"
    assert text.startswith(f"Error: {message}")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("device", ["cuda", "cuda:0,cuda:1", "gpu"])
def test_a_build_without_cuda_is_named_before_torch_is_imported(
    device: str, tmp_path: Path
) -> None:
    if not _is_cpu_build():
        pytest.skip("torch is not installed, or built with CUDA")
    state, text = refuse("run", "cv", "--device", device, cwd=tmp_path)
    assert state == "1 [] []"
    assert text.startswith("Error: CUDA is not available: this torch (")
    assert text.endswith(") is built without it. Install a CUDA build, or drop `--device`.")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("kernels cv --device tpu", "`tpu` is not a device. Choose `cpu`, `cuda` or `cuda:1`."),
        ("kernels cv --compiler nothing", "Generated kernels cannot be collected from `nothing`."),
        ("bisect torch/resnet-18 --compiler eager --device tpu", "`tpu` is not a device."),
        ("bisect torch/resnet-18 --compiler nothing", "There is no compiler `nothing` for torch."),
        ("tune cv --tuner nothing", "There is no tuner `nothing`."),
        ("tune cv --allocator nothing", "There is no allocator `nothing`."),
        ("transform cv --cast float17", "`dtype` of the transform `cast` is 'float17'."),
        ("transform cv --cast float16 --executor slurm", "There is no executor `slurm`."),
        ("translate cv --task vision", "There is no task `vision`."),
    ],
)
def test_every_verb_checks_names_and_devices_first(
    words: str, message: str, tmp_path: Path
) -> None:
    if words.startswith("tune") and find_spec("tvm") is None:
        pytest.skip("TVM is not installed")
    state, text = refuse(*words.split(), "--out", "mine", cwd=tmp_path)
    assert (state, text[: len(message) + 7]) == ("1 [] []", f"Error: {message}")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.slow
def test_devices_are_checked_before_tables_are_read(tmp_path: Path) -> None:
    write_dataset(tmp_path / "source")
    for words in ("device --device tpu", "calibrate source --device tpu"):
        state, text = refuse(*words.split(), cwd=tmp_path)
        assert (state, text) == (
            "1 [] []",
            "Error: `tpu` is not a device. Choose `cpu`, `cuda` or `cuda:1`.",
        )


@pytest.mark.slow
@pytest.mark.torch
def test_a_run_with_nothing_to_do_starts_no_process(tmp_path: Path) -> None:
    write_dataset(tmp_path / "source")
    words = ["run", "cv/chain-1", "--dataset", "./source", "--compiler", "eager", "--out", "runs"]
    words += ["--budget", "0.05", "--threads", "1", "--no-oracle", "--no-kernels"]
    state, first = refuse(*words, cwd=tmp_path)
    assert "subprocess.Popen" in state
    state, again = refuse(*words, cwd=tmp_path)
    status, _, rest = state.partition(" ")
    assert (status, "'torch'" in rest, "'datasets'" in rest) == ("0", False, False)
    assert "subprocess.Popen" not in rest
    assert first.splitlines()[-3:] == again.splitlines()[-3:]
    state, _ = refuse(*words, "--option", "nothing=1", cwd=tmp_path)
    assert state.startswith("1 ") and "subprocess.Popen" in state


def test_builds_that_are_unknown_are_not_refused() -> None:
    assert find_build_problem(["mlir"], "cuda") == ""
    assert find_build_problem([], "cuda") == ""
    assert find_build_problem(["torch"], "cpu") == ""
