"""The sample and its invariants."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from graphnet_datasets.errors import SampleError
from graphnet_datasets.sample import Constraint, CustomOperator, Input, Op, Sample, Symbol, Value
from graphnet_datasets.sample.arguments import (
    DictArg,
    ListArg,
    Named,
    Ref,
    SliceArg,
    find_problem,
    iterate_refs,
    map_refs,
)

TENSOR = Input("input", Value("float32", (2, 3)))
WEIGHT = Input("parameter", Value("bfloat16", ("s0", 3)))


def make_sample(**changes: Any) -> Sample:
    fields: dict[str, Any] = {
        "id": "example/linear",
        "framework": "torch",
        "task": "other",
        "inputs": (TENSOR, WEIGHT, TENSOR),
        "ops": (
            Op("torch.nn.functional.linear", (Ref(0), Ref(1))),
            Op("torch.relu", (Ref(3),)),
            Op("torch.add", (Ref(4), Ref(3))),
        ),
        "outputs": (Ref(5), DictArg((("hidden", Ref(4)),)), None),
        "symbols": (Symbol("s0", 7),),
    }
    return Sample(**(fields | changes))


def test_inputs_are_named_by_role_and_order() -> None:
    assert make_sample().input_names == ("input_0", "parameter_0", "input_1")


def test_a_value_dies_at_its_last_use() -> None:
    assert make_sample().last_uses == (0, 0, -1, 2, 3, 3)
    assert make_sample().dying_values == ((0, 1), (), (3,))


def test_sizes_follow_the_hints_of_the_symbols() -> None:
    sample = make_sample()
    assert sample.num_params == 21
    assert sample.input_bytes == 2 * 6 * 4 + 21 * 2
    assert sample.shape_of(WEIGHT.value, {"s0": 10}) == (10, 3)


def test_refs_are_found_and_mapped_in_order() -> None:
    arg = (Ref(3), ListArg((Ref(1), SliceArg(Ref(2), None, 1))), DictArg((("a", Ref(0)),)), 5)
    assert list(iterate_refs(arg)) == [3, 1, 2, 0]
    assert list(iterate_refs(map_refs(arg, lambda index: Ref(index + 1)))) == [4, 2, 3, 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"id": "../etc/passwd"},
            "The sample id '../etc/passwd' is not a path of letters, digits and `_.+=@-` with "
            "parts separated by `/`. Rename the sample.",
        ),
        (
            {"framework": "jax"},
            "Sample `example/linear` has framework 'jax' (accepted: torch, paddle).",
        ),
        (
            {"ops": (Op("torch.relu", (Ref(3),)),), "outputs": (Ref(3),)},
            "In sample `example/linear`, op 0 (`torch.relu`) uses value 3, which does not exist "
            "there (it may use 0 to 2).",
        ),
        (
            {"outputs": Ref(-1)},
            "In sample `example/linear`, the output structure uses value -1, which does not exist "
            "there (it may use 0 to 5).",
        ),
        (
            {"symbols": ()},
            "In sample `example/linear`, input 1 uses the undeclared symbol `s0`.",
        ),
        (
            {"constraints": (Constraint("s0", "~", "4"),)},  # type: ignore[arg-type]
            "In sample `example/linear`, a constraint has relation '~' (accepted: ==, !=, <, <=, "
            ">, >=).",
        ),
        (
            {"ops": (Op("import os; os.abort", ()),), "outputs": None},
            "In sample `example/linear`, op 0 has the target 'import os; os.abort'.",
        ),
        (
            {"ops": (Op("torch.relu", (), (("x=1): pass #", 1),)),), "outputs": None},
            "In sample `example/linear`, op 0 (`torch.relu`) has the keyword 'x=1): pass #'.",
        ),
        (
            {"ops": (Op("torch.relu", (), (("dim", 1), ("dim", 2))),), "outputs": None},
            "In sample `example/linear`, op 0 (`torch.relu`) has a repeated keyword.",
        ),
        (
            {
                "inputs": (Input("input", Value("float32", (2,)), data=b"12"),),
                "ops": (),
                "outputs": None,
            },
            "In sample `example/linear`, input 0 stores 2 bytes of data instead of 8.",
        ),
        (
            {"custom_operators": (CustomOperator("scale", "()", "", "0" * 64),)},
            "In sample `example/linear`, a custom operator has the name 'scale' (accepted: "
            "`library::name`).",
        ),
        (
            {"custom_operators": (CustomOperator("aten::relu", "()", "", "0" * 64),)},
            "In sample `example/linear`, the custom operator `aten::relu` has a name "
            "reserved for torch's own operators.",
        ),
        (
            {"custom_operators": (CustomOperator("mylib::scale", "()", "", "0" * 64),) * 2},
            "In sample `example/linear`, the custom operator `mylib::scale` is defined twice.",
        ),
        (
            {"custom_operators": (CustomOperator("mylib::scale", "()", "", "abc"),)},
            "In sample `example/linear`, the custom operator `mylib::scale` has the source hash "
            "'abc' (accepted: 64 hexadecimal digits).",
        ),
        (
            {"inputs": (Input("input", Value("float7", (2,))),), "ops": (), "outputs": None},
            None,
        ),
    ],
)
def test_a_broken_invariant_is_refused_with_its_place(
    changes: dict[str, Any], message: str | None
) -> None:
    with pytest.raises(SampleError) as caught:
        make_sample(**changes)
    if message is None:
        assert "input 0 has dtype 'float7' (accepted: bool, uint8" in str(caught.value)
    else:
        assert str(caught.value) == message


def nested(depth: int) -> Any:
    arg: Any = 1
    for _ in range(depth):
        arg = (arg,)
    return arg


@pytest.mark.parametrize(
    ("arg", "problem"),
    [
        (2**63, "has an integer beyond 64 bits"),
        ("x" * 10_001, "has a string of more than 10000 characters"),
        (nested(33), "nests arguments deeper than 32 levels"),
        (DictArg((("a", 1), ("a", 2))), "has a dictionary with a repeated key"),
        (DictArg(((1, 2),)), "has a dictionary with a key that is not a string"),  # type: ignore[arg-type]
        (ListArg((Ref(9),)), "uses value 9, which does not exist there (it may use 0 to 2)"),
        (Named("module", "os"), None),
        (Named("dtype", "float32); import os"), None),
        (print, "has an argument of type `builtin_function_or_method`"),
        ([1], "has an argument of type `list`"),
    ],
)
def test_a_hostile_argument_is_found(arg: Any, problem: str | None) -> None:
    found = find_problem(arg, 3)
    assert found is not None
    assert problem is None or found == problem


def test_arguments_of_every_kind_are_accepted() -> None:
    arg = (None, True, -(2**63), 1.5, float("nan"), 1j, "text", ..., nested(20), Ref(2))
    assert find_problem((arg, SliceArg(None, Ref(0), 2), Named("dtype", "float32")), 3) is None


def test_a_sample_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        make_sample().id = "other"  # type: ignore[misc]


def test_a_graph_is_dynamic_where_its_sizes_are_known_to_follow_a_symbol() -> None:
    x = Input("input", Value("float32", ("s0", 3)))
    symbols = (Symbol("s0", 2),)

    def build(inputs: tuple[Input, ...], *results: Value) -> Sample:
        op = Op("torch.relu", (Ref(0),), results=results or None)
        return Sample("a/b", "torch", "other", inputs, (op,), Ref(len(inputs)), symbols)

    assert not build((x,)).is_dynamic, "declared, and nothing is known to follow it"
    assert not build((x,), Value("float32", (2, 3))).is_dynamic, "the size became a literal"
    assert build((x,), Value("float32", ("s0", 3))).is_dynamic
    assert build((x, Input("symbol", Value(), "s0"))).is_dynamic
