"""MetaSchedule imported lightly, and the version of TVM's foundation that does not crash."""

from __future__ import annotations

import importlib.util
import inspect
import subprocess
import sys

import pytest

from graphnet_datasets.tuning.intrinsics import default_intrinsics, is_tried, light_stacks

needs_tvm = pytest.mark.skipif(
    importlib.util.find_spec("tvm") is None,
    reason="the extra `tuning` is not installed: it has no module `tvm`",
)

LIGHT = """
import inspect, sys
stack = inspect.stack
from graphnet_datasets.tuning.intrinsics import import_meta_schedule
ms = import_meta_schedule()
assert inspect.stack is stack
import tvm
assert tvm.ir.save_json(tvm.tirx.IntImm("int32", 3))  # crashes with apache-tvm-ffi 0.1.15
ms.TuneContext(target=tvm.target.Target("llvm"), num_threads=1)
of_gpus = [name for name in sys.modules if name.startswith("tvm.s_tir.tensor_intrin.cuda")]
assert not of_gpus, of_gpus
"""
REGISTERED = """
import tvm
names = ["dot_16x4_vnni"]
assert all(tvm.s_tir.TensorIntrin.get(name) is not None for name in names)
"""
ALL = """
import sys
from graphnet_datasets.tuning.intrinsics import import_meta_schedule, light_stacks
import_meta_schedule()  # a light import leaves nothing behind that would keep the others out
with light_stacks():  # only to save the test a minute
    ms = import_meta_schedule(is_light=False)
assert "tvm.s_tir.tensor_intrin.hexagon" in sys.modules
"""


def run(text: str) -> None:
    """Run a program in a separate process: a crash of TVM is an exit code there."""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@needs_tvm
def test_a_light_import_registers_this_processors_intrinsics_only() -> None:
    run(LIGHT + (REGISTERED if default_intrinsics() == ("x86",) else ""))


@needs_tvm
@pytest.mark.slow
def test_all_intrinsics_can_still_be_had() -> None:
    run(ALL)


def test_other_versions_are_left_alone() -> None:
    assert is_tried("0.27.0") and not is_tried("0.28.0") and not is_tried("0.270")


def test_stacks_without_source_name_the_same_frames() -> None:
    full = inspect.stack()
    with light_stacks():
        light = inspect.stack()
    assert [each.function for each in light] == [each.function for each in full]
    assert [each.frame for each in light] == [each.frame for each in full]
    assert light[0].code_context is None
