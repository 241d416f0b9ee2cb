"""Sample to row and back, in memory and through Arrow."""

from __future__ import annotations

import math
import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from graphnet_datasets.errors import FormatVersionError, GraphNetError, SchemaError
from graphnet_datasets.sample import Input, Op, Sample, Statistics, Symbol, Value
from graphnet_datasets.sample.arguments import MAX_NESTING, DictArg, ListArg, Named, Ref, SliceArg
from graphnet_datasets.schema import (
    DERIVED_COLUMNS,
    GRAPHS_SCHEMA,
    SCHEMA_VERSION,
    graphs_features,
    sample_from_row,
    sample_to_row,
)
from tests.exact import exact
from tests.strategies import samples

X = Input("input", Value("float32", (2, 3)), statistics=Statistics(0.0, 1.0))


def one_op(*args: Any, **kwargs: Any) -> Sample:
    op = Op("torch.add", args, tuple(kwargs.items()))
    return Sample("a/b", "torch", "cv", (X,), (op,), (Ref(1),))


def through_arrow(row: dict[str, Any]) -> dict[str, Any]:
    return pa.Table.from_pylist([row], GRAPHS_SCHEMA).to_pylist()[0]


@given(samples())
def test_row_to_sample_is_the_inverse_of_sample_to_row(sample: Sample) -> None:
    row = sample_to_row(sample)
    assert exact(sample_from_row(row)) == exact(sample)
    stored = through_arrow(row)
    assert stored == row
    assert exact(sample_from_row(stored)) == exact(sample)


@pytest.mark.parametrize(
    "literal",
    [
        *(math.nan, math.inf, -math.inf, -0.0, 0.0, 1e300, 5e-324, 1.0, 0.1),
        *(True, False, 1, 0, -(2**63), 2**63 - 1, None, ...),
        *(complex(math.nan, -0.0), complex(-math.inf, 1.5), "\x00", "\ud800", "{}", "naïve", ""),
        *((), ((),), ListArg(()), ListArg((1, ListArg((True,)))), DictArg(())),
        DictArg((("b", Ref(0)), ("a", (Ref(0), -0.0)))),
        SliceArg(None, Ref(0), -1),
        (SliceArg(None, None, None), ..., Ref(0)),
        Named("dtype", "float32"),
        Named("memory_format", "channels_last"),
    ],
    ids=repr,
)
def test_literals_keep_type_and_bits(literal: Any) -> None:
    for sample in (one_op(Ref(0), literal), one_op(other=literal, alpha=Ref(0))):
        row = through_arrow(sample_to_row(sample))
        assert exact(sample_from_row(row)) == exact(sample)


def test_statistics_keep_nan_and_the_absence_of_each_number() -> None:
    measured = Statistics(math.nan, None, -0.0, math.inf)
    inputs = (
        Input("input", Value("float32", ()), statistics=measured),
        Input("input", Value("float32", ()), statistics=Statistics(is_measured=False)),
        Input("input", Value("float32", ())),
    )
    sample = Sample("a", "torch", "cv", inputs, (), ())
    assert exact(sample_from_row(through_arrow(sample_to_row(sample)))) == exact(sample)


def test_a_row_has_the_scalars_that_people_filter_by() -> None:
    weight = Input("parameter", Value("bfloat16", (4, "s0")))
    sample = Sample(
        "a/b",
        "torch",
        "nlp",
        (X, weight, Input("symbol", Value(), "s0")),
        (Op("torch.relu", (Ref(0),)),),
        (Ref(3), None, ListArg((Ref(3), Ref(0)))),
        (Symbol("s0", 5),),
    )
    row = sample_to_row(sample, {"family": "f", "flops": 6})
    assert {
        name: row[name]
        for name in ("task", "num_ops", "num_inputs", "num_outputs", "num_params", "input_bytes")
    } == {
        "task": "nlp",
        "num_ops": 1,
        "num_inputs": 3,
        "num_outputs": 3,
        "num_params": 20,
        "input_bytes": 24 + 40,
    }
    assert (row["dtype"], row["is_dynamic"]) == ("bfloat16", True)
    assert (row["family"], row["flops"], row["structure_hash"]) == ("f", 6, None)
    assert (row["inputs"][1]["shape"], row["inputs"][1]["symbolic_shape"]) == ([4, 5], [None, "s0"])


def test_a_dimension_without_a_size_at_capture_is_stored_as_its_expression_alone() -> None:
    op = Op("torch.nonzero", (), (), (Value("int64", ("4//(s0 - 1)", 2)),))
    sample = Sample("a", "torch", "cv", (), (op,), (), (Symbol("s0", 1),))
    (result,) = sample_to_row(sample)["ops"][0]["results"]
    assert (result["shape"], result["symbolic_shape"]) == ([None, 2], ["4//(s0 - 1)", None])
    assert exact(sample_from_row(through_arrow(sample_to_row(sample)))) == exact(sample)


def test_columns_and_order_are_those_of_the_schema_and_of_the_features() -> None:
    assert list(sample_to_row(one_op())) == GRAPHS_SCHEMA.names
    assert graphs_features().arrow_schema.remove_metadata() == GRAPHS_SCHEMA.remove_metadata()


def test_an_unknown_derived_column_is_refused() -> None:
    expected = f"`flop` is not a derived column. Choose from {', '.join(DERIVED_COLUMNS)}."
    with pytest.raises(SchemaError, match=f"^{re.escape(expected)}$"):
        sample_to_row(one_op(), {"flop": 1})


def test_another_format_version_is_refused_with_the_way_out() -> None:
    row = {**sample_to_row(one_op()), "schema_version": 7}
    expected = (
        "This row has format version 7; this library reads 1. Install the release of "
        "`graphnet-datasets` that reads version 7, or load the branch `v1` of the dataset "
        '(`revision="v1"`).'
    )
    with pytest.raises(FormatVersionError, match=f"^{re.escape(expected)}$"):
        sample_from_row(row)
    assert SCHEMA_VERSION == 1


def damaged(path: str, value: Any) -> dict[str, Any]:
    """Return a row with one part replaced; the path reads `ops.0.args`."""
    row: Any = sample_to_row(one_op(Ref(0), 1))
    *parents, last = path.split(".")
    place = row
    for part in parents:
        place = place[int(part) if part.isdigit() else part]
    place[int(last) if last.isdigit() else last] = value
    return row


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("id", 3, "In row `3`: `id` is of type `int` where text is expected."),
        ("ops", None, "In row `a/b`: `ops` is of type `NoneType` where a list is expected."),
        ("num_ops", 2, "In row `a/b`: `num_ops` is 2, but `ops` has 1 items."),
        (
            "ops.0.target",
            b"torch.add",
            "In row `a/b`: `ops[0]`: `target` is of type `bytes` where text is expected.",
        ),
        (
            "ops.0.operands",
            ["0"],
            "In row `a/b`: `ops[0]`: `operands` contains values other than an integer.",
        ),
        (
            "ops.0.operands",
            [],
            "In row `a/b`: `ops[0]`: The templates have more holes than there are operands.",
        ),
        (
            "ops.0.operands",
            [0, 0],
            "In row `a/b`: `ops[0]`: The templates have fewer holes than there are operands.",
        ),
        (
            "ops.0.args",
            "[{}",
            "In row `a/b`: `ops[0]`: The argument template `[{}` is not JSON: Expecting ',' "
            "delimiter: line 1 column 4 (char 3). Write the row again.",
        ),
        (
            "ops.0.args",
            "[NaN]",
            "In row `a/b`: `ops[0]`: The argument template `[NaN]` is not JSON: `NaN` is written "
            'as {"float": "nan"}. Write the row again.',
        ),
        (
            "ops.0.kwargs",
            "[]",
            "In row `a/b`: `ops[0]`: The argument template `[]` is not a JSON object.",
        ),
        (
            "ops.0.args",
            '[{"call": "os.system"}]',
            'In row `a/b`: `ops[0]`: An argument template contains `{"call": "os.system"}`, '
            "which is not a template. Write the row again.",
        ),
        (
            "inputs.0",
            [],
            "In row `a/b`: `inputs[0]`: Expected a dict, got a `list`.",
        ),
        (
            "inputs.0.symbolic_shape",
            [None],
            "In row `a/b`: `inputs[0]`: `shape` and `symbolic_shape` have different lengths.",
        ),
        (
            "outputs.operands",
            [],
            "In row `a/b`: `outputs` has more holes than operands.",
        ),
        (
            "outputs.structure",
            '[{"tuple":[{}]},1]',
            "In row `a/b`: `outputs` has more operands than holes.",
        ),
        (
            "provenance.faults",
            "none",
            "In row `a/b`: `faults` is of type `str` where a list is expected.",
        ),
    ],
)
def test_a_damaged_row_says_where(path: str, value: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=f"^{re.escape(message)}$"):
        sample_from_row(damaged(path, value))


def test_a_missing_column_is_named() -> None:
    row = sample_to_row(one_op())
    del row["inputs"]
    message = "In row `a/b`: the required column `inputs` is missing."
    with pytest.raises(SchemaError, match=f"^{re.escape(message)}$"):
        sample_from_row(row)


def test_the_deepest_argument_that_a_sample_may_have_survives() -> None:
    arg: Any = Ref(0)
    for _ in range(MAX_NESTING):
        arg = (arg,)
    sample = one_op(arg)
    assert exact(sample_from_row(sample_to_row(sample))) == exact(sample)


@pytest.mark.parametrize("text", ["[" * 100_000, "[" + "9" * 100_000 + "]", "[" * 40 + "]" * 40])
def test_bombs_in_a_template_are_refused(text: str) -> None:
    with pytest.raises(SchemaError, match="argument template"):
        sample_from_row(damaged("ops.0.args", text))


def test_columns_of_ones_own_and_missing_derived_columns_do_not_matter() -> None:
    sample = one_op(Ref(0))
    row = {**sample_to_row(sample), "my_note": "kept"}
    for name in ("family", "flops", "num_params", "dtype"):
        del row[name]
    assert sample_from_row(row) == sample


@pytest.mark.parametrize("wrong", [True, 1.0])
def test_a_number_equal_to_an_earlier_size_is_refused(wrong: object) -> None:
    value = Value("float32", (1,))
    ops = (Op("torch.relu", (Ref(0),), results=(value,)),
           Op("torch.sin", (Ref(1),), results=(value,)))  # fmt: skip
    sample = Sample("example/two", "torch", "other", (Input("input", value),), ops, Ref(2))
    row = sample_to_row(sample)
    assert sample_from_row(row) == sample
    row["ops"][1]["results"][0]["shape"] = [wrong]
    with pytest.raises(GraphNetError, match=r"op 1|ops\[1\]"):
        sample_from_row(row)
