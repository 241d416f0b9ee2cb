"""Regions are closed by the graph that opens them, and by the walk that fails inside."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from graphnet_datasets.errors import MaterializeError
from graphnet_datasets.frameworks import find_regions
from graphnet_datasets.frameworks.torch.building.regions import Regions, check_regions
from graphnet_datasets.frameworks.torch.operators import lookup
from graphnet_datasets.sample.arguments import Ref

from .building import build

VMAP = "torch._functorch.predispatch._vmap_{}crement_nesting"
ENTER = ("torch.amp.autocast_mode._enter_autocast", "cpu", None, True, None)
EXIT = "torch.amp.autocast_mode._exit_autocast"
GRAD = "torch._C._set_grad_enabled"
NOT_INNERMOST = "closes a region that is not the innermost open one"
LEFT_OPEN = "opens a region that no operator closes"


@pytest.mark.parametrize(
    "ops",
    [
        (),
        (ENTER, (EXIT, Ref(1))),
        (ENTER, ENTER, (EXIT, Ref(2)), (EXIT, Ref(1))),
        ((VMAP.format("in"), 2, "error"), ENTER, (EXIT, Ref(2)), (VMAP.format("de"),)),
        ((GRAD, False), (GRAD, True)),
    ],
)
def test_regions_that_nest_are_accepted(ops: tuple[Any, ...]) -> None:
    check_regions(build(*ops, outputs=None))


@pytest.mark.parametrize(
    ("ops", "problem"),
    [
        ((ENTER,), LEFT_OPEN),
        (((VMAP.format("in"), 2, "error"),), LEFT_OPEN),
        (((VMAP.format("de"),),), NOT_INNERMOST),
        ((ENTER, ENTER, (EXIT, Ref(1)), (EXIT, Ref(2))), NOT_INNERMOST),
        ((ENTER, (EXIT, Ref(0))), NOT_INNERMOST),
        (
            (ENTER, (VMAP.format("in"), 2, "error"), (EXIT, Ref(1)), (VMAP.format("de"),)),
            NOT_INNERMOST,
        ),
        (((GRAD, False),), LEFT_OPEN),
        (((GRAD, False), (GRAD, True), (GRAD, False)), r"Op 2 .*" + LEFT_OPEN),
    ],
)
def test_regions_that_do_not_nest_are_refused(ops: tuple[Any, ...], problem: str) -> None:
    with pytest.raises(MaterializeError, match=problem):
        check_regions(build(*ops, outputs=None))


def test_regions_come_in_the_order_in_which_they_close() -> None:
    nested = (ENTER, (VMAP.format("in"), 2, "error"), (VMAP.format("de"),), (EXIT, Ref(1)))
    found = find_regions(build(*nested, (GRAD, False), (GRAD, True), outputs=None))
    assert [(each.opens, each.closes, each.is_closed) for each in found] == [
        (1, 2, True),
        (0, 3, False),
        (4, 5, False),
    ]


def test_regions_are_closed_if_a_walk_fails() -> None:
    def fail_inside() -> None:
        with Regions() as regions:
            regions.call(lookup(VMAP.format("in")), (2, "error"), {})
            regions.call(lookup(ENTER[0]), ("cpu", torch.bfloat16, True, None), {})
            regions.call(lookup(GRAD), (False,), {})
            assert torch.is_autocast_enabled("cpu")
            raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        fail_inside()
    assert not torch.is_autocast_enabled("cpu")
    assert torch.is_grad_enabled()
    assert torch._C._functorch.maybe_current_level() is None  # type: ignore[attr-defined]
