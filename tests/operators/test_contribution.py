"""An operator with full knowledge is one declaration in one file, tried in a scratch copy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import graphnet_datasets

PACKAGE = Path(graphnet_datasets.__file__).parent
ENTRY = (
    "gather: aten torch Tensor checked flops=0 rule@Tensor,torch=value.gather\n"
    "    torch_index=2.index/table:0.input/axis:1.dim\n"
)
IS_UNKNOWN = """
import graphnet_datasets.errors
from graphnet_datasets.frameworks.torch.operators import lookup
try:
    lookup("torch.gather")
except graphnet_datasets.errors.UnknownOperatorError:
    print(graphnet_datasets.__file__)
"""
IS_KNOWN = """
import torch
import graphnet_datasets
from graphnet_datasets import materialize
from graphnet_datasets.frameworks.torch.operators import is_checked, lookup
from graphnet_datasets.frameworks.torch.walking.flop_formulas import count_flops
from graphnet_datasets.frameworks.torch.walking.forms import Form
from graphnet_datasets.frameworks.torch.walking.rules import apply_rule
from graphnet_datasets.inputs.consumers import Indexing, indexing_of
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Ref

assert is_checked(lookup("torch.Tensor.gather"))
forms = Form((5, 3), None, torch.float32), Form((2, 3), None, torch.int64)
assert apply_rule("torch.gather", (forms[0], 0, forms[1]), {}).shape == (2, 3)
table, index = torch.rand(5, 3), torch.tensor([[4, 0, 2], [1, 1, 3]])
result = torch.gather(table, 0, index)
assert count_flops(torch.ops.aten.gather.default, (table, 0, index), result) == 0
op = Op("torch.gather", (Ref(0), 0, Ref(1)))
assert indexing_of("torch", op) == Indexing(((2, "index"),), (0, "input"), (1, "dim"))
inputs = Input("input", Value("float32", (5, 3))), Input("input", Value("int64", (2, 3)))
sample = Sample("example/gather", "torch", "other", inputs, (op,), Ref(2))
assert torch.equal(materialize(sample)(table, index), result)
print(graphnet_datasets.__file__)
"""


def run(code: str, scratch: Path) -> str:
    """Run code with the package of a scratch copy and return its output."""
    environment = {**os.environ, "PYTHONPATH": str(scratch), "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=scratch,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout.strip()


@pytest.mark.slow
def test_a_new_operator_touches_one_file(tmp_path: Path) -> None:
    shutil.copytree(
        PACKAGE,
        tmp_path / PACKAGE.name,
        ignore=shutil.ignore_patterns("__pycache__", "*.parquet", "tensor_comprehensions"),
    )
    copy = tmp_path / PACKAGE.name
    family = copy / "operators" / "families" / "indexing.py"
    text = family.read_text()
    without, count = re.subn(r"(?m)^gather: .*\n(?:    .*\n)*", "", text)
    assert count == 1
    family.write_text(without)
    assert run(IS_UNKNOWN, tmp_path) == str(copy / "__init__.py")
    family.write_text(without.replace('ENTRIES = """\n', f'ENTRIES = """\n{ENTRY}', 1))
    assert run(IS_KNOWN, tmp_path) == str(copy / "__init__.py")
