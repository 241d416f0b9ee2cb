"""Hashes: what they must not see, and what they must."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from graphnet_datasets.analysis.effects import find_effects
from graphnet_datasets.analysis.hashes import (
    family,
    signature_hash,
    source_hash,
    structure_hash,
)
from graphnet_datasets.directory import read_directory
from graphnet_datasets.sample import Input, Op, Provenance, Sample, Symbol, Value
from graphnet_datasets.sample.arguments import ListArg, Named, Ref, iterate_refs, map_refs
from tests.strategies import runnable_samples, samples

HASHES: list[Callable[[Sample], str]] = [signature_hash, structure_hash, family]
TENSOR = Input("input", Value("float32", (2, 3)))


def graph(*ops: Op, outputs: Any = None, num_inputs: int = 2, **changes: Any) -> Sample:
    last = Ref(num_inputs + len(ops) - 1)
    return Sample(
        "example/graph",
        "torch",
        "other",
        (TENSOR,) * num_inputs,
        ops,
        last if outputs is None else outputs,
        **changes,
    )


def depends_on(sample: Sample) -> list[set[int]]:
    """Return for each operator the operators that must stand before it."""
    first = len(sample.inputs)
    effects = find_effects(sample)
    needs = [
        {ref - first for ref in iterate_refs((op.args, op.kwargs)) if ref >= first}
        | set(effects.seen[position])
        for position, op in enumerate(sample.ops)
    ]
    # A read must also stay before the next write of the memory that it reads.
    for writer, op in enumerate(sample.ops):
        if op.target in ("operator.iadd", "torch.Tensor.add_"):
            needs[writer] |= set(range(writer))
            for later in range(writer + 1, sample.num_ops):
                needs[later].add(writer)
    return needs


def reorder(sample: Sample, keys: list[int]) -> Sample:
    """Return the sample with its operators in another order that keeps every dependence."""
    first = len(sample.inputs)
    needs = depends_on(sample)
    order: list[int] = []
    while len(order) < sample.num_ops:
        ready = [
            position
            for position in range(sample.num_ops)
            if position not in order and needs[position] <= set(order)
        ]
        order.append(ready[keys[len(order) % len(keys)] % len(ready)])
    return renumber(sample, list(range(first)), order)


def renumber(sample: Sample, input_order: list[int], op_order: list[int]) -> Sample:
    first = len(sample.inputs)
    old = input_order + [first + position for position in op_order]
    new = {value: index for index, value in enumerate(old)}

    def move(arg: Any) -> Any:
        return map_refs(arg, lambda ref: Ref(new[ref]))

    return dataclasses.replace(
        sample,
        inputs=tuple(sample.inputs[index] for index in input_order),
        ops=tuple(
            dataclasses.replace(
                sample.ops[position],
                args=move(sample.ops[position].args),
                kwargs=move(sample.ops[position].kwargs),
            )
            for position in op_order
        ),
        outputs=move(sample.outputs),
    )


def change_op(sample: Sample, position: int, **changes: Any) -> Sample:
    ops = list(sample.ops)
    ops[position] = dataclasses.replace(ops[position], **changes)
    return dataclasses.replace(sample, ops=tuple(ops))


@settings(max_examples=40)
@given(samples())
def test_every_sample_has_hashes_of_32_digits(sample: Sample) -> None:
    for function in HASHES:
        found = function(sample)
        assert len(found) == 32
        assert int(found, 16) >= 0


@settings(max_examples=40)
@given(samples())
def test_names_devices_and_records_do_not_count(sample: Sample) -> None:
    other = dataclasses.replace(
        sample,
        id="another/name",
        task="nlp",
        kind="backward",
        provenance=Provenance(source="elsewhere"),
        inputs=tuple(
            each
            if each.role == "symbol"
            else dataclasses.replace(each, source_name="renamed", device="cuda:7", statistics=None)
            for each in sample.inputs
        ),
        ops=tuple(dataclasses.replace(op, results=None, module="m") for op in sample.ops),
    )
    for function in HASHES:
        assert function(other) == function(sample)


@given(runnable_samples(), st.lists(st.integers(0, 100), min_size=1, max_size=9))
def test_the_order_of_independent_operators_does_not_count(sample: Sample, keys: list[int]) -> None:
    other = reorder(sample, keys)
    for function in HASHES:
        assert function(other) == function(sample)


@given(runnable_samples(), st.randoms(use_true_random=False))
def test_the_order_of_the_arguments_does_not_count(sample: Sample, random: Any) -> None:
    order = list(range(len(sample.inputs)))
    random.shuffle(order)
    other = renumber(sample, order, list(range(sample.num_ops)))
    assert signature_hash(other) == signature_hash(sample)
    assert structure_hash(other) == structure_hash(sample)


@settings(max_examples=40)
@given(samples("torch"), st.data())
def test_another_operator_changes_every_hash(sample: Sample, data: st.DataObject) -> None:
    assume(sample.ops)
    position = data.draw(st.integers(0, sample.num_ops - 1))
    other = change_op(sample, position, target="torch.nn.functional.mish")
    assert signature_hash(other) != signature_hash(sample)
    assert structure_hash(other) != structure_hash(sample)


LITERALS = st.sampled_from([True, 1, 1.0, "1", 2, 17, -1, None, ..., 1j, 0.0, -0.0, 1e-5, 1e-6])


@settings(max_examples=40)
@given(samples("torch"), LITERALS, LITERALS, st.data())
def test_another_literal_changes_the_structure(
    sample: Sample, one: Any, two: Any, data: st.DataObject
) -> None:
    assume(sample.ops and repr(one) != repr(two))
    position = data.draw(st.integers(0, sample.num_ops - 1))
    args = sample.ops[position].args
    left, right = (
        change_op(sample, position, args=(*args, ListArg((literal,)))) for literal in (one, two)
    )
    assert signature_hash(left) != signature_hash(right)
    assert structure_hash(left) != structure_hash(right)


def unfold(sample: Sample) -> list[Any]:
    """Return for each value the whole expression that it stands for; inputs are all alike."""
    expressions: list[Any] = ["input"] * len(sample.inputs)
    for op in sample.ops:
        expressions.append((op.target, map_refs((op.args, op.kwargs), expressions.__getitem__)))
    return expressions


@given(runnable_samples(), st.data())
def test_another_edge_changes_the_structure(sample: Sample, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, sample.num_ops - 1))
    refs = list(iterate_refs(sample.ops[position].args))
    old = data.draw(st.sampled_from(refs))
    new = data.draw(st.integers(0, len(sample.inputs) + position - 1))
    expressions = unfold(sample)
    # Two values of one expression are the same number; to swap them may change nothing.
    assume(expressions[old] != expressions[new])
    args = map_refs(sample.ops[position].args, lambda ref: Ref(new if ref == old else ref))
    other = change_op(sample, position, args=args)
    assert signature_hash(other) != signature_hash(sample)
    assert structure_hash(other) != structure_hash(sample)


@given(runnable_samples(), st.data())
def test_another_dtype_of_an_input_changes_both_and_another_shape_the_signature_alone(
    sample: Sample, data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(sample.inputs) - 1))
    shape = sample.inputs[index].value.shape
    assert shape is not None

    def with_value(value: Value) -> Sample:
        inputs = list(sample.inputs)
        inputs[index] = dataclasses.replace(inputs[index], value=value)
        return dataclasses.replace(sample, inputs=tuple(inputs))

    half = with_value(Value("float16", shape))
    wider = with_value(Value("float32", (*shape, 7)))
    assert len({signature_hash(each) for each in (sample, half, wider)}) == 3
    assert structure_hash(half) != structure_hash(sample)
    assert structure_hash(wider) == structure_hash(sample)
    assert family(half) == family(wider) == family(sample)


def test_a_shared_weight_is_not_two_weights() -> None:
    linear = "torch.nn.functional.linear"
    shared = graph(Op(linear, (Ref(0), Ref(1))), Op(linear, (Ref(3), Ref(1))), num_inputs=3)
    own = graph(Op(linear, (Ref(0), Ref(1))), Op(linear, (Ref(3), Ref(2))), num_inputs=3)
    assert signature_hash(shared) != signature_hash(own)


def test_data_and_weights_are_distinguished_by_use() -> None:
    sample = graph(Op("torch.matmul", (Ref(0), Ref(1))))
    weight = dataclasses.replace(TENSOR, role="parameter")
    assert signature_hash(dataclasses.replace(sample, inputs=(TENSOR, weight))) == signature_hash(
        sample
    )


def test_the_device_in_text_or_as_a_constant_does_not_count() -> None:
    hashes = {
        signature_hash(graph(Op("torch.Tensor.to", (Ref(0), device))))
        for device in (Named("device", "cpu"), Named("device", "cuda:3"), "cuda", "cpu", "cuda:1")
    }
    assert len(hashes) == 1
    other = signature_hash(graph(Op("torch.Tensor.to", (Ref(0), Named("dtype", "float16")))))
    assert other not in hashes


def test_the_order_of_keywords_does_not_count() -> None:
    one, two = ("dim", 0), ("keepdim", Ref(1))
    left = graph(Op("torch.sum", (Ref(0),), (one, two)))
    right = graph(Op("torch.sum", (Ref(0),), (two, one)))
    for function in HASHES:
        assert function(left) == function(right)


@pytest.mark.parametrize(
    "write",
    [
        Op("torch.Tensor.add_", (Ref(0), 1)),
        Op("operator.iadd", (Ref(0), 1)),
        Op("operator.setitem", (Ref(0), 0, 1)),
        Op("torch.nn.functional.relu", (Ref(0),), (("inplace", True),)),
        Op("torch.add", (Ref(1), 1), (("out", Ref(0)),)),
        Op("torch.ops.aten.add_.Tensor", (Ref(0), Ref(1))),
    ],
    ids=lambda op: op.target,
)
def test_a_read_before_a_write_is_not_a_read_after_it(write: Op) -> None:
    before = graph(Op("torch.exp", (Ref(0),)), write, outputs=Ref(2))
    after = graph(write, Op("torch.exp", (Ref(0),)), outputs=Ref(3))
    elsewhere = graph(write, Op("torch.exp", (Ref(1),)), outputs=Ref(3))
    assert len({signature_hash(each) for each in (before, after, elsewhere)}) == 3


def test_a_write_through_a_view_is_seen_by_its_base() -> None:
    view = Op("torch.Tensor.transpose", (Ref(0), 0, 1))
    write, read = Op("torch.Tensor.add_", (Ref(2), 1)), Op("torch.exp", (Ref(0),))
    after = graph(view, write, read, outputs=Ref(4))
    before = graph(view, read, write, outputs=Ref(3))
    assert signature_hash(after) != signature_hash(before)
    copy = dataclasses.replace(view, target="torch.Tensor.clone")
    copied_after = graph(copy, write, read, outputs=Ref(4))
    copied_before = graph(copy, read, write, outputs=Ref(3))
    assert signature_hash(copied_after) == signature_hash(copied_before)


def test_writes_to_one_tensor_keep_their_order() -> None:
    add, scale = Op("torch.Tensor.add_", (Ref(0), 1)), Op("torch.Tensor.mul_", (Ref(0), 2))
    other = Op("torch.Tensor.mul_", (Ref(1), 2))
    assert signature_hash(graph(add, scale, outputs=Ref(0))) != signature_hash(
        graph(scale, add, outputs=Ref(0))
    )
    assert signature_hash(graph(add, other, outputs=Ref(0))) == signature_hash(
        graph(other, add, outputs=Ref(0))
    )


def test_random_operators_keep_their_order() -> None:
    normal, uniform = Op("torch.randn_like", (Ref(0),)), Op("torch.rand_like", (Ref(0),))
    left = graph(normal, uniform, outputs=(Ref(2), Ref(3)))
    right = graph(uniform, normal, outputs=(Ref(3), Ref(2)))
    assert signature_hash(left) != signature_hash(right)


def test_regions_contain_their_operators() -> None:
    enter = Op("torch.amp.autocast_mode._enter_autocast", ("cpu", Named("dtype", "bfloat16")))
    leave = Op("torch.amp.autocast_mode._exit_autocast", (Ref(2),))
    product = Op("torch.matmul", (Ref(0), Ref(1)))
    inside = graph(enter, product, leave, outputs=Ref(3))
    outside = graph(enter, leave, product, outputs=Ref(4))
    assert signature_hash(inside) != signature_hash(outside)


def test_calls_that_compute_nothing_do_not_count() -> None:
    relu = Op("torch.relu", (Ref(0),))
    log = Op("torch._C._log_api_usage_once", ("python.nn_module",))
    for function in HASHES:
        assert function(graph(log, relu)) == function(graph(relu))


def test_the_message_of_an_assertion_does_not_count() -> None:
    def asserts(target: str, message: str) -> Sample:
        return graph(Op("operator.ge", (Ref(0), 0)), Op(target, (Ref(2), message)))

    name = "torch.ops.aten._assert_scalar.default"
    first = asserts(name, "Runtime assertion failed for expression u0 >= 0 on node 'ge'")
    second = asserts(name, "Runtime assertion failed for expression u4 >= 0 on node 'ge_4'")
    assert signature_hash(first) == signature_hash(second)
    assert structure_hash(first) == structure_hash(second)
    assert structure_hash(asserts("torch.einsum", "ij")) != structure_hash(
        asserts("torch.einsum", "ji")
    )


def test_symbolic_sizes_count_as_they_were_captured() -> None:
    symbolic = Input("input", Value("float32", ("s0", 3)))
    relu = Op("torch.relu", (Ref(0),))
    static = graph(relu, num_inputs=1)
    dynamic = dataclasses.replace(static, inputs=(symbolic,), symbols=(Symbol("s0", 2),))
    unused = dataclasses.replace(
        dynamic,
        inputs=(symbolic, Input("symbol", Value(), "s0")),
        ops=(relu,),
        outputs=Ref(2),
    )
    assert signature_hash(dynamic) == signature_hash(static) == signature_hash(unused)
    larger = dataclasses.replace(dynamic, symbols=(Symbol("s0", 5),))
    assert signature_hash(larger) != signature_hash(static)


def test_the_structure_keeps_every_literal() -> None:
    def view(*sizes: int) -> str:
        return structure_hash(graph(Op("torch.Tensor.view", (Ref(0), *sizes))))

    assert len({view(1, 768), view(1, 769), view(2, 768)}) == 3


def test_the_family_of_a_network_does_not_know_its_depth() -> None:
    def network(depth: int, width: int) -> Sample:
        ops: list[Op] = []
        held = Ref(0)
        for _ in range(depth):
            first = 1 + len(ops)
            ops.append(Op("torch.nn.functional.layer_norm", (held, (width,))))
            ops.append(Op("torch.nn.functional.gelu", (Ref(first),)))
            ops.append(Op("operator.add", (held, Ref(first + 1))))
            held = Ref(first + 2)
        ops.append(Op("torch.Tensor.mean", (held, 1)))
        return graph(*ops, num_inputs=1)

    assert family(network(1, 8)) == family(network(12, 768)) == family(network(13, 64))
    assert len({signature_hash(network(depth, 8)) for depth in range(1, 5)}) == 4


def test_source_hash_is_that_of_the_canonical_text() -> None:
    sample = graph(Op("torch.relu", (Ref(0),)))
    renamed = dataclasses.replace(sample, id="another/name")
    assert len(source_hash(sample)) == 64
    assert source_hash(sample) == source_hash(renamed)
    assert source_hash(sample) != source_hash(change_op(sample, 0, target="torch.tanh"))


def test_upstream_samples_fall_into_families(upstream_samples: Path) -> None:
    folder = upstream_samples / "samples"

    def families(*names: str) -> set[str]:
        return {family(read_directory(folder / name)[0]) for name in names}

    regnets = [f"timm/regnety_0{size}" for size in ("16.pycls_in1k", "32.pycls_in1k")]
    berts = ["prajjwal1_bert-tiny", "google/bert_uncased_L-10_H-768_A-12"]
    bert_families = families(*(f"transformers-auto-model/{name}" for name in berts))
    assert len(families(*regnets)) == 1
    assert len(bert_families) == 1
    assert len(families("torchvision/densenet161", "torchvision/densenet169")) == 1
    assert families(*regnets) != bert_families
