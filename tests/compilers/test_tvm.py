"""TVM's MetaSchedule, which builds and times its candidates in processes of its own."""

from __future__ import annotations

import pytest
import torch

from graphnet_datasets.compilers import make_compiler


@pytest.mark.slow  # the first tuning in a process parses every tensor intrinsic of TVM
@pytest.mark.filterwarnings("ignore")
def test_a_tuned_graph_does_what_eager_does() -> None:
    pytest.importorskip("tvm", reason="apache-tvm is not installed")
    module = torch.fx.symbolic_trace(
        torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU()).eval()
    )
    x = torch.randn(4, 16)
    compiler = make_compiler("tvm", "torch", {"num_trials": 2, "num_threads": 1})
    with torch.no_grad():
        compiled = compiler.compile(module, {"input": x})
        torch.testing.assert_close(compiled(input=x), module(x))
