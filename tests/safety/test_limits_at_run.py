"""What only a run of a graph tells is bounded when it runs, and a single draw as well."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
import torch

from graphnet_datasets import make_inputs, materialize
from graphnet_datasets.errors import MemoryLimitError, TimeLimitError
from graphnet_datasets.inputs import InputRole, make_array, redraw
from graphnet_datasets.sample import Input, Op, Sample, Statistics, Symbol, Value
from graphnet_datasets.sample.arguments import ListArg, Named, Ref
from tests.safety.test_limits import MATRIX, sample_of


def drawn(shape: tuple[int, ...], low: int, high: int) -> Input:
    statistics = Statistics(min=low, max=high, mean=(low + high) / 2, std=(high - low) / 4)
    return Input("input", Value("int64", shape), statistics=statistics)


HUGE = drawn((8,), 10**10, 10**10)
FEW = drawn((8,), 1, 3)
FALSE = (Value("int64", (3,)),)


def number_of(value: int, results: tuple[Value, ...]) -> tuple[Op, ...]:
    largest = Op("torch.Tensor.max", (Ref(value),))
    return largest, Op("torch.Tensor.item", (Ref(value + 1),), (), results)


def element_of(value: int, results: tuple[Value, ...]) -> tuple[Op, ...]:
    elements = Op("torch.Tensor.tolist", (Ref(value),), (), results)
    return elements, Op("operator.getitem", (Ref(value + 1), 0), (), results)


GROWN = {
    "counts": [Op("torch.bincount", (Ref(0),))],
    "counts in ATen": [Op("torch.ops.aten.bincount.default", (Ref(0),))],
    "classes": [Op("torch.nn.functional.one_hot", (Ref(0), -1))],
    "classes by default": [Op("torch.ops.aten.one_hot.default", (Ref(0),))],
}
"""What elements make large, in calls on input 0."""

SIZED = {
    "zeros": Op("torch.zeros", (Ref(2),)),
    "full": Op("torch.full", ((Ref(2),), 1.0)),
    "arange": Op("torch.arange", (Ref(2),)),
    "new": Op("torch.Tensor.new_zeros", (Ref(0), (Ref(2), 2))),
    "repeat": Op("torch.Tensor.repeat", (Ref(0), Ref(2))),
    "list": Op("operator.mul", (ListArg((0,)), Ref(2))),
}
"""What a number, value 2, makes large."""

NUMBERS = {"item": number_of, "tolist": element_of}


def runs(sample: Sample) -> None:
    module = materialize(sample, memory_limit_bytes=10**8)
    module(**make_inputs(sample, memory_limit_bytes=10**8))


@pytest.mark.parametrize("results", [(), FALSE], ids=["unrecorded", "false"])
@pytest.mark.parametrize("name", GROWN)
def test_sizes_out_of_elements_are_bounded_when_they_are_known(
    name: str, results: tuple[Value, ...]
) -> None:
    ops = [dataclasses.replace(op, results=results) for op in GROWN[name]]
    with pytest.raises(MemoryLimitError, match=r"Op 0 .* the limit is 0\.100 GB"):
        runs(sample_of(*ops, inputs=(HUGE,)))
    runs(sample_of(*ops, inputs=(FEW,)))


def test_a_least_number_of_counts_is_bounded() -> None:
    op = Op("torch.bincount", (Ref(0),), (("minlength", 10**12),))
    with pytest.raises(MemoryLimitError):
        runs(sample_of(op, inputs=(FEW,)))


@pytest.mark.parametrize("results", [(), FALSE], ids=["unrecorded", "false"])
@pytest.mark.parametrize("way", NUMBERS)
@pytest.mark.parametrize("name", SIZED)
def test_sizes_out_of_numbers_are_bounded(name: str, way: str, results: tuple[Value, ...]) -> None:
    ops = (*NUMBERS[way](0, results), dataclasses.replace(SIZED[name], results=results))
    with pytest.raises(MemoryLimitError, match="Op 2"):
        runs(sample_of(*ops, inputs=(HUGE,)))
    if name != "list":  # how often a list is repeated must be known before
        runs(sample_of(*ops, inputs=(FEW,)))


@pytest.mark.parametrize("way", NUMBERS)
@pytest.mark.parametrize("name", ["mul", "add", "pow", "lshift"])
def test_numbers_do_not_grow_without_end(name: str, way: str) -> None:
    chain = [Op(f"operator.{name}", (Ref(at), Ref(at))) for at in range(2, 60)]
    with pytest.raises(MemoryLimitError):
        runs(sample_of(*NUMBERS[way](0, ()), *chain, inputs=(HUGE,)))


def test_lists_do_not_grow_without_end() -> None:
    chain = [Op("operator.add", (Ref(at), Ref(at))) for at in range(1, 60)]
    with pytest.raises(MemoryLimitError, match="concatenates lists to more than 100000 items"):
        runs(sample_of(Op("torch.Tensor.tolist", (Ref(0),)), *chain, inputs=(FEW,)))


def test_values_derived_from_a_false_record_are_checked() -> None:
    """The record claims 3 rows, but a run has 10,000, whose products take 800 MB."""
    found = Op("torch.nonzero", (Ref(0),), (), (Value("int64", (3, 1)),))
    column = Op("torch.Tensor.to", (Ref(1), Named("dtype", "float32")), (), FALSE)
    table = Op("torch.matmul", (Ref(2), Ref(3)))
    ops = (found, column, Op("torch.Tensor.t", (Ref(2),)), table)
    ones = Input("input", Value("float32", (10_000,)), statistics=Statistics(mean=1.0, std=0.0))
    with pytest.raises(MemoryLimitError, match="Op 3"):
        runs(sample_of(*ops, inputs=(ones,)))


def test_many_values_of_unknown_size_count_together() -> None:
    ops = [*number_of(0, ()), *(Op("torch.zeros", (Ref(2), 1_000_000)) for _ in range(30))]
    sample = Sample("example/bomb", "torch", "other", (FEW,), tuple(ops), (Ref(3), Ref(32)))
    kept = dataclasses.replace(sample, outputs=tuple(map(Ref, range(3, 33))))
    with pytest.raises(MemoryLimitError, match="Op"):
        runs(kept)
    module = materialize(sample, memory_limit_bytes=10**8)
    for _ in range(2):  # what is freed does not count, nor does an earlier call
        module(**make_inputs(sample))


def test_checks_are_not_compiled() -> None:
    ops = (*number_of(0, ()), Op("torch.zeros", (Ref(2),)))
    sample = sample_of(*ops, inputs=(FEW,))
    module = materialize(sample)
    inputs = make_inputs(sample)
    compiled = torch.compile(module, backend="eager")
    assert torch.equal(compiled(**inputs), module(**inputs))
    assert torch.equal(copy.deepcopy(module)(**inputs), module(**inputs))
    without = materialize(sample, allow_unchecked_operators=True)
    assert [node.op for node in without.graph.nodes].count("call_module") == 0


def test_settled_graphs_have_no_checks() -> None:
    ops = (Op("torch.relu", (Ref(0),)), Op("torch.Tensor.sum", (Ref(1),)))
    module = materialize(sample_of(*ops, inputs=(MATRIX,)))
    assert all(node.op != "call_module" for node in module.graph.nodes)


@pytest.mark.parametrize(
    "op",
    [
        Op("torch.sum", (Ref(1),)), Op("torch.Tensor.max", (Ref(1),)),
        Op("torch.nn.functional.max_pool2d", (Ref(0), 2 * 10**9, 1, 10**9)),
        Op("torch.max_pool1d", (Ref(0),), (("kernel_size", ListArg((10**9,))),)),
    ],
)  # fmt: skip
def test_arguments_that_make_a_call_long_are_refused(op: Op) -> None:
    expand = Op("torch.Tensor.expand", (Ref(0), 2**45, 8, 8))
    with pytest.raises(TimeLimitError):
        materialize(sample_of(expand, op, inputs=(Input("input", Value("float32", (1, 8, 8))),)))


def test_expanded_inputs_are_drawn_at_the_size_of_their_storage() -> None:
    value = Value("float32", (400_000_000, 3), (0, 1))
    sample = sample_of(inputs=(Input("input", value),))
    tensor = make_inputs(sample, memory_limit_bytes=1000)["input_0"]
    assert tensor.shape == (400_000_000, 3) and tensor.stride() == (0, 1)
    small = sample_of(inputs=(Input("input", Value("float32", (5, 3), (0, 1))),))
    whole = sample_of(inputs=(Input("input", Value("float32", (5, 3))),))
    first = make_inputs(whole)["input_0"][:1]
    assert torch.equal(make_inputs(small)["input_0"], first.expand(5, 3))
    assert torch.equal(tensor[-1:], first)


@pytest.mark.usefixtures("second_per_look")
def test_a_single_large_draw_is_given_up() -> None:
    sample = sample_of(inputs=(Input("input", Value("float32", (2**29,))),))
    with pytest.raises(TimeLimitError, match="Generating the inputs"):
        make_inputs(sample, time_limit_s=3.0)
    weight = sample_of(inputs=(Input("parameter", Value("float32", (2**29,))),))
    with pytest.raises(TimeLimitError, match="Making the weights"):
        materialize(weight, weights="parameters", time_limit_s=3.0)


def test_a_far_node_of_a_graph_takes_no_memory() -> None:
    """Stored edges name a node 2**60: its names were as many, 8 EB of them."""
    edges = np.array([[0, 2**60], [1, 0]])
    drawn_anew = redraw(1, edges, InputRole("edges", 0, 2**60))
    assert sorted(map(tuple, drawn_anew.T.tolist())) == sorted(map(tuple, edges.T.tolist()))


def test_stored_elements_are_cut_before_they_are_repeated() -> None:
    data = np.zeros((1, 2**20), np.float32).tobytes()
    each = Input("input", Value("float32", ("s0", "s1")), data=data)
    sample = Sample(
        "example/cut",
        "torch",
        "other",
        (each,),
        (),
        Ref(0),
        symbols=(Symbol("s0", 1), Symbol("s1", 2**20)),
    )
    array = make_array(sample, 0, sizes={"s0": 2**20, "s1": 1})
    assert array.shape == (2**20, 1)
