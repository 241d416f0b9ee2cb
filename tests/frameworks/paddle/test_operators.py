"""Paddle's operator table: what stands in it, what never may, and how it is reached."""

from __future__ import annotations

import subprocess
import sys

import pytest

from graphnet_datasets.errors import UNKNOWN_ADVICE, MaterializeError, UnknownOperatorError
from graphnet_datasets.frameworks.paddle.operator_names import FUNCTION_NAMES
from graphnet_datasets.frameworks.paddle.operators import (
    OPERATORS,
    Operator,
    canonical,
    draws_random_numbers,
    lookup,
    mutates,
    resolve,
)
from graphnet_datasets.sample import Op


def test_reading_the_table_imports_no_framework() -> None:
    code = (
        "import sys; from graphnet_datasets.frameworks.paddle import source, printer, operators;"
        "operators.lookup('paddle._C_ops.add'); assert not {'paddle', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "name",
    [
        "paddle._C_ops.run_program",
        "paddle._C_ops._run_custom_op",
        "paddle._C_ops._run_python_op",
        "paddle._C_ops.read_file",
        "paddle._C_ops.print",
        "paddle._C_ops.check_numerics",
        "paddle._C_ops.send_v2",
        "paddle._C_ops.all_reduce",
        "paddle._C_ops.tensorrt_engine",
        "paddle._C_ops.set_parameter",
        "paddle._C_ops.as_strided",
        "paddle._C_ops.index_elementwise_get",
        "paddle._C_ops.__class__",
        "paddle.load",
        "paddle.save",
        "paddle.utils.cpp_extension.load",
        "paddle.Tensor.register_hook",
        "operator.methodcaller",
        "operator.setitem",
        "os.system",
        "eval",
        "",
    ],
)
def test_operators_with_side_effects_are_unknown(name: str) -> None:
    with pytest.raises(UnknownOperatorError) as caught:
        lookup(name)
    assert str(caught.value) == (f"`{name}` is not in paddle's operator table. {UNKNOWN_ADVICE}")


def test_names_of_programs_lead_to_the_same_operator() -> None:
    assert canonical("pd_op.conv2d") == "paddle._C_ops.conv2d"
    assert canonical("paddle.arange") == "paddle.arange"


def test_inplace_forms_are_known_as_such() -> None:
    assert lookup("paddle._C_ops.relu_").is_inplace
    assert not lookup("paddle._C_ops.relu").is_inplace
    assert not lookup("paddle._C_ops.relu_grad").is_inplace


def test_batch_norm_mutates_only_in_training() -> None:
    def call(is_test: bool, use_global_stats: bool) -> Op:
        args = (None,) * 5 + (is_test, 0.9, 1e-5, "NCHW", use_global_stats, False)
        return Op("paddle._C_ops.batch_norm", args)

    assert mutates(call(False, False))
    assert not mutates(call(True, False))
    assert not mutates(call(False, True))


def test_dropout_draws_only_in_training() -> None:
    def call(is_test: bool) -> Op:
        return Op("paddle._C_ops.dropout", (None, None, 0.5, is_test, "upscale_in_train", 0, False))

    assert draws_random_numbers(call(False))
    assert not draws_random_numbers(call(True))
    assert draws_random_numbers(Op("paddle._C_ops.uniform"))
    assert not draws_random_numbers(Op("paddle._C_ops.relu"))


@pytest.mark.paddle
def test_every_name_exists_in_the_installed_paddle() -> None:
    for operator in OPERATORS.values():
        assert callable(resolve(operator)), operator


@pytest.mark.paddle
def test_an_operator_that_paddle_lacks_is_named() -> None:
    with pytest.raises(MaterializeError, match=r"`paddle\._C_ops\.gone` does not exist in the"):
        resolve(Operator("paddle._C_ops.gone"))


@pytest.mark.paddle
def test_one_result_of_a_hidden_tuple() -> None:
    import paddle

    take = resolve(lookup("operator.getitem"))
    tensor = paddle.ones([2, 3])
    assert take(tensor, 0) is tensor
    assert take(tensor, 1) is None
    assert take([tensor, None], 0) is tensor
    with pytest.raises(IndexError):
        take((tensor,), 1)


def test_the_table_is_large_and_plain() -> None:
    assert len(FUNCTION_NAMES) > 800
    assert all(name.isidentifier() and not name.startswith("_") for name in FUNCTION_NAMES)


@pytest.mark.slow
@pytest.mark.paddle
def test_unique_runs_in_eager_mode_and_in_a_program() -> None:
    code = """
import paddle
from graphnet_datasets.frameworks.paddle.operators import lookup, resolve
unique = resolve(lookup("paddle._C_ops.unique"))
arguments = True, True, True, (), paddle.int64
print(unique(paddle.to_tensor([3, 1, 3]), *arguments)[0].tolist())
paddle.enable_static()
with paddle.static.program_guard(paddle.static.Program()):
    print(len(unique(paddle.static.data("x", [3], "int64"), *arguments)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split("\n")[:2]) == (0, ["[1, 3]", "4"]), done.stderr
