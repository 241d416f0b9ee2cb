"""Sets of sizes within a memory bound, and graphs at them."""

from __future__ import annotations

import re

import pytest

from graphnet_datasets import Sample
from graphnet_datasets.errors import MemoryLimitError, SampleError, TransformError
from graphnet_datasets.sample import Constraint, Input, Op, Symbol, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.transforms import make_ladder, reify, spread_sizes
from graphnet_datasets.transforms.registry import Step, apply
from graphnet_datasets.transforms.symbolic.sizes import peak_bytes


def image(*symbols: Symbol, constraints: tuple[Constraint, ...] = ()) -> Sample:
    value = Value("float32", ("batch", 3, "side", "side"))
    symbols = symbols or (Symbol("batch", 1, 1), Symbol("side", 64, 32, 512))
    return Sample(
        "test/image",
        "torch",
        "cv",
        (Input("input", value),),
        (Op("torch.relu", (Ref(0),), results=(value,)), Op("torch.abs", (Ref(1),))),
        (Ref(2),),
        symbols,
        constraints,
    )


def test_sizes_meet_constraints_ranges_and_the_bound() -> None:
    sample = image(constraints=(Constraint("Mod(side, 32)", "==", "0"),))
    for limit in (2**20, 2**24, 2**28):
        found = spread_sizes(sample, 9, memory_limit_bytes=limit)
        assert found
        for sizes in found:
            assert sizes["side"] % 32 == 0 and 32 <= sizes["side"] <= 512
            assert peak_bytes(sample, sizes) <= limit
        areas = [sizes["batch"] * sizes["side"] ** 2 for sizes in found]
        assert areas == sorted(set(areas))
    assert len(found) == 9


def test_memory_is_that_of_inputs_and_live_values() -> None:
    assert peak_bytes(image(), {"batch": 2, "side": 10}) == 2 * (2 * 3 * 100 * 4)


def test_sizes_that_fit_nowhere_are_refused() -> None:
    with pytest.raises(SampleError, match="meet its constraints within"):
        spread_sizes(image(), memory_limit_bytes=1000)
    with pytest.raises(SampleError, match=re.escape("has no symbols. Symbolise it first")):
        spread_sizes(reify(image()))
    with pytest.raises(SampleError, match=re.escape("`count` is 0; it must be at least 1")):
        spread_sizes(image(), 0)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"width": 3}, "`test/image` has no symbol `width`. Its symbols are batch, side."),
        (
            {"side": 16},
            "`test/image` cannot have `side` = 16: it must be an integer of at least 32",
        ),
        ({"side": 1024}, "`test/image` cannot have `side` = 1024: it must be at most 512."),
        ({"side": 65}, "they violate `Mod(side, 32) == 0`"),
    ],
)
def test_sizes_that_a_graph_cannot_have_are_named(sizes: dict[str, int], message: str) -> None:
    sample = image(constraints=(Constraint("Mod(side, 32)", "==", "0"),))
    with pytest.raises(SampleError, match=re.escape(message)):
        reify(sample, sizes)


def test_huge_sizes_stop_at_the_limit_before_anything_is_made() -> None:
    stored = Input("input", Value("uint8", ("batch", 2)), data=bytes(2))
    sample = Sample("test/s", "torch", "other", (stored,), (), (Ref(0),), (Symbol("batch", 1),))
    with pytest.raises(MemoryLimitError, match="Generating the inputs of `test/s` takes"):
        reify(sample, {"batch": 2**61})
    assert reify(sample, {"batch": 3}).inputs[0].data == bytes(6)


def test_weights_that_no_memory_holds_are_no_reason_against_smaller_sizes() -> None:
    # Nothing is made of them, and who runs the graph may draw each where it is read.
    weight = Input("parameter", Value("float32", (2**24, 2**24)))
    sample = Sample(
        "test/wide",
        "torch",
        "other",
        (Input("input", Value("float32", ("batch", 2**24))), weight),
        (Op("torch.matmul", (Ref(0), Ref(1))),),
        Ref(2),
        (Symbol("batch", 8, 1, 64),),
    )
    assert reify(sample, {"batch": 2}).inputs[0].value.shape == (2, 2**24)


def test_a_graph_at_many_sizes_runs_at_each() -> None:
    made = list(make_ladder(reify(image()), 5, memory_limit_bytes=2**22))
    assert len(made) == 5
    for each in made:
        assert isinstance(each, Sample)
        assert each.provenance.parent_id == "test/image/batch=1+side=64"
        assert not each.symbols


def test_sizes_are_a_transform_by_name() -> None:
    options = {"count": 3, "memory_bytes": 2**22, "check": False}
    made = list(apply(reify(image()), [Step("sizes", options), Step("cast", {"dtype": "float64"})]))
    assert [each.inputs[0].value.dtype for each in made if isinstance(each, Sample)] == [
        "float64"
    ] * 3
    with pytest.raises(TransformError, match="must be at least 1"):
        Step("sizes", {"count": 0})
    (symbolic,) = apply(reify(image()), [Step("symbolise")])
    assert isinstance(symbolic, Sample) and symbolic.is_dynamic
