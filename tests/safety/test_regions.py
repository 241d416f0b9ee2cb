"""A graph that fails inside a region leaves the state of the process as it was."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from graphnet_datasets import materialize
from graphnet_datasets.frameworks.torch.building.region_state import RestoringModule, _State
from graphnet_datasets.sample.arguments import Ref
from tests.frameworks.torch.building import build

ENTER = ("torch.amp.autocast_mode._enter_autocast", "cpu", None, True, None)
EXIT = "torch.amp.autocast_mode._exit_autocast"
INFER = ("torch.autograd.grad_mode._enter_inference_mode", True)
TRAIN = "torch.autograd.grad_mode._exit_inference_mode"
VMAP = ("torch._functorch.predispatch._vmap_increment_nesting", 2, "error")
UNMAP = ("torch._functorch.predispatch._vmap_decrement_nesting",)
GRAD = "torch._C._set_grad_enabled"
FAIL = ("torch.matmul", Ref(0), Ref(0))  # [2, 3] with [2, 3]

GRAPHS = {
    "autocast": (ENTER, FAIL, (EXIT, Ref(1))),
    "autocast in autocast": (ENTER, ENTER, FAIL, (EXIT, Ref(2)), (EXIT, Ref(1))),
    "after a region that was closed": (ENTER, (EXIT, Ref(1)), ENTER, FAIL, (EXIT, Ref(3))),
    "inference mode": (INFER, FAIL, (TRAIN, Ref(1))),
    "inference in inference": (INFER, INFER, FAIL, (TRAIN, Ref(2)), (TRAIN, Ref(1))),
    "grad mode": ((GRAD, False), FAIL, (GRAD, True)),
    "vmap": (VMAP, FAIL, UNMAP),
    "vmap in vmap": (VMAP, VMAP, FAIL, UNMAP, UNMAP),
    "all": (ENTER, INFER, (GRAD, False), VMAP, FAIL, UNMAP, (GRAD, True), (TRAIN, Ref(2)),
            (EXIT, Ref(1))),
}  # fmt: skip


@contextlib.contextmanager
def of_the_caller(kind: str) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        if kind == "own regions":
            stack.enter_context(torch.autocast("cpu", torch.float16))
            stack.enter_context(torch.no_grad())
        yield


@pytest.mark.parametrize("caller", ["plain", "own regions"])
@pytest.mark.parametrize("ops", GRAPHS.values(), ids=list(GRAPHS))
def test_a_failing_call_leaves_the_state_as_it_was(ops: tuple[Any, ...], caller: str) -> None:
    module = materialize(build(*ops, outputs=(Ref(0),)))
    module_copy = copy.deepcopy(module)
    recompiled = copy.deepcopy(module)
    recompiled.recompile()
    for each in (module, module_copy, recompiled):
        with of_the_caller(caller):
            before = vars(_State())
            with pytest.raises(RuntimeError, match="cannot be multiplied"):
                each(torch.ones(2, 3))
            assert vars(_State()) == before


def test_the_wrapper_is_there_only_where_it_is_needed_and_compiles_whole() -> None:
    plain = materialize(build(("torch.relu", Ref(0))))
    assert not isinstance(plain, RestoringModule)
    module = materialize(
        build(ENTER, ("torch.mul", Ref(0), Ref(0)), (EXIT, Ref(1)), outputs=Ref(2))
    )
    assert isinstance(module, RestoringModule)
    graphs = []

    def backend(graph: torch.fx.GraphModule, _: Any) -> Any:
        graphs.append([node.target for node in graph.graph.nodes if node.op.startswith("call")])
        return graph

    for each in (module, torch.fx.GraphModule(module, module.graph)):
        torch._dynamo.reset()
        compiled = torch.compile(each, backend=backend, fullgraph=True)
        assert torch.equal(compiled(torch.full((2, 3), 2.0)), torch.full((2, 3), 4.0))
    assert graphs[0] == graphs[1]
