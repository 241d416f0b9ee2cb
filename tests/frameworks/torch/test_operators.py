"""The operator table: what stands in it, what never may, and the many spellings of one name."""

from __future__ import annotations

import math
import operator
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets.errors import UNKNOWN_ADVICE, UnknownOperatorError
from graphnet_datasets.frameworks.torch import operators
from graphnet_datasets.frameworks.torch.operators import (
    canonical,
    draws_random_numbers,
    lookup,
    mutates,
    name_of,
    resolve,
)
from graphnet_datasets.frameworks.torch.operators.table import PACKETS
from graphnet_datasets.frameworks.torch.operators.table import PRIMS as PRIM_NAMES
from graphnet_datasets.frameworks.torch.operators.words import words
from graphnet_datasets.operators import OperatorValues
from graphnet_datasets.sample import Op
from graphnet_datasets.sample.arguments import Ref

NAMES = sorted(operators.all_names())
ATEN = sorted(f"torch.ops.aten.{packet}" for packet in PACKETS)
PRIMS = sorted(f"torch.ops.prims.{packet}" for packet in PRIM_NAMES)


def test_looking_a_name_up_imports_no_framework() -> None:
    code = (
        "import sys; from graphnet_datasets.frameworks.torch.operators import lookup;"
        "lookup('torch.ops.aten.add.Tensor'); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("torch._C._nn.linear", "torch.nn.functional.linear"),
        ("torch._C._nn.scaled_dot_product_attention",) * 2,
        ("torch._C._nn.log_sigmoid", "torch.nn.functional.logsigmoid"),
        ("torch._C._nn.mse_loss", "torch._C._nn.mse_loss"),
        ("torch.nn.functional.conv2d", "torch.conv2d"),
        ("torch.functional.split", "torch.split"),
        ("torch.functional.einsum", "torch.einsum"),
        ("torch._VF.lstm", "torch.lstm"),
        ("torch._C._linalg.linalg_vector_norm", "torch.linalg.vector_norm"),
        ("torch._C._fft.fft_fftn", "torch.fft.fftn"),
        ("torch._C._special.special_expit", "torch.special.expit"),
        ("torch._C._functorch._add_batch_dim", "torch._functorch.predispatch._add_batch_dim"),
        ("_operator.iadd", "operator.iadd"),
        ("torch.Tensor.view", "torch.Tensor.view"),
    ],
)
def test_spellings_of_one_function_have_one_name(alias: str, name: str) -> None:
    expected = name.replace("torch._C._nn.scaled", "torch.nn.functional.scaled")
    assert canonical(alias) == expected


@pytest.mark.parametrize(
    ("target", "name"),
    [
        (torch.nn.functional.linear, "torch.nn.functional.linear"),
        (torch._C._nn.pad, "torch.nn.functional.pad"),  # type: ignore[attr-defined]
        (torch.nn.functional.pad, "torch.nn.functional.pad"),
        (torch.functional.split, "torch.split"),
        (torch.conv2d, "torch.conv2d"),
        (torch.ops.aten.add.Tensor, "torch.ops.aten.add.Tensor"),
        (torch.ops.aten.mul.default, "torch.ops.aten.mul.default")
        if hasattr(torch.ops.aten.mul, "default")
        else (torch.ops.aten.relu.default, "torch.ops.aten.relu.default"),
        (torch.ops.aten.index, "torch.ops.aten.index"),
        (operator.iadd, "operator.iadd"),
        (math.sqrt, "math.sqrt"),
        (max, "builtins.max"),
        (torch.sym_sum, "torch.sym_sum"),
        (torch.Tensor.add_, "torch.Tensor.add_"),
        (torch.amp.autocast_mode._enter_autocast, "torch.amp.autocast_mode._enter_autocast"),
        (torch._C._set_grad_enabled, "torch._C._set_grad_enabled"),
        ("transpose", "torch.Tensor.transpose"),
        ("__eq__", "torch.Tensor.__eq__"),
    ],
)
def test_a_callable_is_found_by_its_canonical_name(
    target: Callable[..., Any] | str, name: str
) -> None:
    assert name_of(target) == name


def test_every_name_of_the_table_resolves_and_is_named_back() -> None:
    """`_foreach_copy` and `_foreach_zero` exist in ATen alone."""
    missing = []
    for name in NAMES:
        try:
            found = resolve(lookup(name))
        except UnknownOperatorError:
            missing.append(name)
            continue
        assert callable(found)
        assert name_of(found) == canonical(name)
    if torch.__version__.startswith("2.13"):
        assert all(dispatched(packet) for _, packet in installed(ATEN + PRIMS))
        assert missing == ["torch._foreach_copy", "torch._foreach_zero"]


def installed(names: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield the packets that the installed torch has; the table was made with 2.13."""
    for name in names:
        try:
            yield name, resolve(lookup(name))
        except UnknownOperatorError:
            assert not torch.__version__.startswith("2.13"), name


def dispatched(packet: Any) -> list[str]:
    """Return the overloads that the dispatcher knows, without TorchScript's list and text ones."""
    known = operators.dispatched_names()
    return [
        overload for overload in packet.overloads() if getattr(packet, overload).name() in known
    ]


def test_every_overload_that_writes_is_marked() -> None:
    """ATen's schemas say which arguments are written; the table must not know less."""
    for name, packet in installed(ATEN):
        for overload in dispatched(packet):
            schema = getattr(packet, overload)._schema
            writes = any(
                argument.alias_info is not None and argument.alias_info.is_write
                for argument in schema.arguments
            )
            if writes:
                op = Op(f"{name}.{overload}", (Ref(0),) * 5 + (True,) * 4)
                assert mutates(op), op.target


def test_every_seeded_overload_is_marked_random() -> None:
    for name, packet in installed(ATEN):
        for overload in dispatched(packet):
            if torch.Tag.nondeterministic_seeded in getattr(packet, overload).tags:
                backward_reads_a_saved_seed = "backward" in name
                assert lookup(f"{name}.{overload}").is_random or backward_reads_a_saved_seed, name


FORBIDDEN = sorted(
    words(
        """
        torch.load torch.save torch.from_file torch.fork torch.compile torch.vmap torch.cond
        torch.seed torch.set_default_dtype torch.set_num_threads torch.manual_seed
        torch.set_rng_state torch.from_dlpack torch.utils.cpp_extension.load torch.hub.load
        torch.ops.load_library torch.ops.aten.from_file torch.ops.aten.set_
        torch.ops.aten.set_data torch.ops.aten._reshape_alias torch.ops.aten.resize_
        torch.ops.aten._index_put_impl_ torch.ops.aten._print torch.ops.aten.data_ptr
        torch.ops.aten.fbgemm_linear_fp16_weight torch.ops.aten.fbgemm_pack_gemm_matrix_fp16
        torch.ops.higher_order.wrap torch.ops.debugprims.load_tensor
        torch.ops.mkldnn.data_ptr torch.ops.c10d.broadcast_
        torch.ops.inductor._reinterpret_tensor torch.ops.inductor._alloc_from_pool
        torch.Tensor.data_ptr torch.Tensor.numpy torch.Tensor.apply_ torch.Tensor.map_
        torch.Tensor.set_ torch.Tensor.storage torch.Tensor.untyped_storage
        torch.Tensor.register_hook torch.Tensor.backward torch.Tensor.__reduce__
        torch.Tensor.__class__ torch.Tensor.__setattr__ torch.Tensor.__dict__
        torch.Tensor.share_memory_ torch.Tensor.__torch_function__ torch.Tensor.resize_
        torch.Tensor.view.a torch._C._set_worker_signal_handlers
        torch._C._jit_set_profiling_mode torch._dynamo.reset torch operator.attrgetter
        operator.methodcaller operator.call builtins.exec builtins.eval builtins.open
        builtins.getattr builtins.__import__ builtins.compile math.factorial math.comb
        math.perm os.system subprocess.run sys.exit operator.concat operator.iconcat
        torch.ops.aten.add.Tensor.out torch._VF.split torch.ops.aten.add.__class__.mro
        """
    )
)


@pytest.mark.parametrize("name", FORBIDDEN)
def test_operators_beyond_tensors_are_not_in_the_table(name: str) -> None:
    with pytest.raises(UnknownOperatorError):
        lookup(name)


@pytest.mark.parametrize("last", sorted(OperatorValues("left_out")))
def test_unsafe_operators_are_excluded_with_the_reason(last: str) -> None:
    for namespace in ("torch", "torch.ops.aten", "torch.Tensor", "torch.linalg", "torch.sparse"):
        with pytest.raises(UnknownOperatorError):
            lookup(f"{namespace}.{last}")
    with pytest.raises(UnknownOperatorError) as caught:
        lookup("torch.ops.aten.embedding_dense_backward.default")
    assert str(caught.value) == (
        "`torch.ops.aten.embedding_dense_backward.default` is left out of the operator table of "
        "torch: its kernel does not compare indices or sizes with the tensors that it writes to. "
        "Skip the sample."
    )


def test_an_unknown_operator_is_named_with_advice() -> None:
    with pytest.raises(UnknownOperatorError) as caught:
        lookup("torch.ops.aten._foo")
    assert str(caught.value) == (
        f"`torch.ops.aten._foo` is not in the operator table of torch. {UNKNOWN_ADVICE}"
    )


def test_an_overload_that_the_installed_torch_lacks_fails_when_used() -> None:
    entry = lookup("torch.ops.aten.add.Nowhere")
    with pytest.raises(UnknownOperatorError) as caught:
        resolve(entry)
    assert str(caught.value) == (
        "`torch.ops.aten.add.Nowhere` is in the operator table, but the installed torch "
        f"{torch.__version__} has no operator of that name. Install the torch with which the "
        "sample was captured."
    )


@pytest.mark.parametrize("name", ["mul.left_t", "add.t", "add.str", "pow.int", "sort.int"])
def test_overloads_on_lists_and_text_are_refused(name: str) -> None:
    """`aten.mul.left_t` repeats a list: `[0] * 10**10` by another name."""
    with pytest.raises(UnknownOperatorError):
        resolve(lookup(f"torch.ops.aten.{name}"))


@pytest.mark.parametrize("overload", ["__class__", "_dir", "op", "overloads", "_qualified_op_name"])
def test_a_python_attribute_of_a_packet_is_no_overload(overload: str) -> None:
    with pytest.raises(UnknownOperatorError):
        resolve(lookup(f"torch.ops.aten.add.{overload}"))


def test_an_entry_made_by_hand_is_not_resolved() -> None:
    forged = operators.Operator("torch.load", "function")
    with pytest.raises(UnknownOperatorError, match="was not made by `lookup`"):
        resolve(forged)


@pytest.mark.slow
@given(st.text(max_size=300) | st.from_regex(r"torch(\.[a-z_]{1,9}){1,4}", fullmatch=True))
def test_any_text_is_an_entry_or_a_clear_error(name: str) -> None:
    try:
        entry = lookup(name)
    except UnknownOperatorError:
        return
    assert canonical(entry.name) == entry.name


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (Op("torch.nn.functional.relu", (Ref(0),), (("inplace", True),)), True),
        (Op("torch.nn.functional.relu", (Ref(0), True)), True),
        (Op("torch.nn.functional.relu", (Ref(0),), (("inplace", False),)), False),
        (Op("torch.nn.functional.dropout", (Ref(0), 0.1, False, True)), True),
        (Op("torch.nn.functional.batch_norm", (Ref(0), Ref(1), Ref(2), None, None, True)), True),
        (Op("torch.nn.functional.batch_norm", (Ref(0), Ref(1), Ref(2), None, None, False)), False),
        (Op("torch.nn.functional.embedding", (Ref(0), Ref(1), None, 1.0)), True),
        (Op("torch.nn.functional.embedding", (Ref(0), Ref(1), None, None)), False),
        (Op("torch.add", (Ref(0), Ref(1)), (("out", Ref(2)),)), True),
        (Op("torch.add", (Ref(0), Ref(1))), False),
        (Op("torch.Tensor.__iadd__", (Ref(0), 1)), True),
        (Op("torch.Tensor.__and__", (Ref(0), Ref(1))), False),
        (Op("operator.setitem", (Ref(0), 1, Ref(1))), True),
        (Op("operator.not_", (Ref(0),)), False),
        (Op("operator.and_", (Ref(0), Ref(1))), False),
        (Op("torch.ops.aten.sort.values", (Ref(0),)), True),
    ],
)
def test_writing_calls_are_distinguished(op: Op, expected: bool) -> None:
    assert mutates(op) is expected


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (Op("torch.rand", (2,)), True),
        (Op("torch.nn.functional.dropout", (Ref(0), 0.1)), True),
        (Op("torch.nn.functional.dropout", (Ref(0), 0.1, False, False)), False),
        (Op("torch.nn.functional.scaled_dot_product_attention", (Ref(0),) * 3), False),
        (
            Op(
                "torch.nn.functional.scaled_dot_product_attention",
                (Ref(0),) * 3,
                (("dropout_p", 0.1),),
            ),
            True,
        ),
        (Op("torch.Tensor.normal_", (Ref(0),)), True),
        (Op("torch.add", (Ref(0), Ref(0))), False),
    ],
)
def test_drawing_calls_are_distinguished(op: Op, expected: bool) -> None:
    assert draws_random_numbers(op) is expected


def test_state_operators_are_marked() -> None:
    for name in ("torch.amp.autocast_mode._enter_autocast", "torch._C._set_grad_enabled"):
        assert lookup(name).is_state
    assert not lookup("torch.relu").is_state


@pytest.mark.parametrize("name", ["index_select", "select"])
def test_replacements_by_other_libraries_resolve_to_the_operator(name: str) -> None:
    hash_tensor = pytest.importorskip("torch_geometric.hash_tensor")
    found = getattr(torch, name)
    assert found is getattr(hash_tensor, f"_new_{name}")
    assert name_of(found) == f"torch.{name}"
