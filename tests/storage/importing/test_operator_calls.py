"""Recorded operator calls as samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphnet_datasets import Sample, load_dataset
from graphnet_datasets.errors import DatasetExistsError, GraphNetError, SampleError
from graphnet_datasets.sample.arguments import DictArg, ListArg, Named, Ref
from graphnet_datasets.storage.importing import import_operator_calls, read_operator_calls

CALLS = """\
Operator: aten.add.Tensor
cnt: 12, ((T([2, 3], f32), T([3], f32)), {'alpha': 2})
cnt: 12, ((T([2, 3], f32), T([3], f32)), {'alpha': 2})
cnt: 1, ((T([2, 3], bf16, [1, 2]), -1.5), {})
Operator: aten._to_copy.default
cnt: 2, ((T([4, 4], f32),), {'dtype': f16, 'layout': th.strided, 'device': "torch.device('cpu')"})
Operator: aten.cat.default
cnt: 0, (([T([4, 4], i64), T([4, 4], i64)], 1), {})
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "calls.txt"
    path.write_text(text)
    return path


def test_each_distinct_call_is_a_sample(tmp_path: Path) -> None:
    samples, reasons = read_operator_calls(write(tmp_path, CALLS))
    assert reasons == {} and len(samples) == 4
    add, strided, copy, cat = samples
    assert add.ops[0].args == (Ref(0), Ref(1)) and add.ops[0].kwargs == (("alpha", 2),)
    assert [item.value.shape for item in add.inputs] == [(2, 3), (3,)]
    assert add.provenance.num_occurrences == 12 and cat.provenance.num_occurrences == 0
    assert strided.inputs[0].value.stride == (1, 2) and strided.ops[0].args[1] == -1.5
    assert dict(copy.ops[0].kwargs) == {
        "dtype": Named("dtype", "float16"),
        "layout": Named("layout", "strided"),
        "device": Named("device", "cpu"),
    }
    assert cat.ops[0].args == (ListArg((Ref(0), Ref(1))), 1)
    assert cat.inputs[0].value.dtype == "int64"


@pytest.mark.torch
def test_imported_calls_run(tmp_path: Path) -> None:
    from graphnet_datasets import make_inputs, materialize

    number, _ = import_operator_calls(write(tmp_path, CALLS), tmp_path / "out")
    rows = load_dataset(tmp_path / "out", "other", split="train")
    assert len(rows) == number == 4
    for row in rows:
        assert isinstance(row, dict)
        sample = Sample.from_row(row)
        assert materialize(sample)(**make_inputs(sample)).shape in ((2, 3), (4, 4), (4, 8))
    with pytest.raises(DatasetExistsError):
        import_operator_calls(write(tmp_path, CALLS), tmp_path / "out")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("(open('x'),), {}", "The argument `open\\('x'\\)` is unknown"),
        ("(__import__('os').system('true'),), {}", "is unknown"),
        ("(T([2], f33),), {}", "A tensor needs a shape and one of the dtypes"),
        ("(T([x], f32),), {}", "must be integers"),
        ("(T([2], f32, 1, 2),), {}", "A tensor needs a shape"),
        ("(T([True], f32),), {}", "must be integers"),
        ("(1,), {2: 3}", "names in quotes"),
        ("(1,)", "Expected a tuple of arguments"),
        ("(1,), {", "cannot be parsed"),
        ("(" + "[" * 40 + "]" * 40 + ",), {}", "nested too deeply"),
        ("(" + "-" * 2000 + "1,), {}", "nested too deeply|cannot be parsed"),
        ("(" + "1," * 60_000 + "), {}", "more than 100,000 characters"),
    ],
)  # fmt: skip
def test_other_lines_are_reported(tmp_path: Path, line: str, reason: str) -> None:
    text = f"Operator: aten.relu.default\ncnt: 1, ({line})\n"
    samples, reasons = read_operator_calls(write(tmp_path, text))
    assert samples == [] and list(reasons) == ["line 2"]
    with pytest.raises(SampleError, match=reason):
        import_operator_calls(tmp_path / "calls.txt", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_call_needs_an_operator_and_a_file_needs_calls(tmp_path: Path) -> None:
    _, reasons = read_operator_calls(write(tmp_path, "cnt: 1, ((1,), {})\n"))
    assert reasons["line 1"].startswith("The call has no operator.")
    with pytest.raises(SampleError, match="has no recorded calls"):
        read_operator_calls(write(tmp_path, "hello\n"))
    with pytest.raises(GraphNetError, match="cannot be read"):
        read_operator_calls(tmp_path / "absent.txt")


def test_dictionaries_keep_their_order(tmp_path: Path) -> None:
    text = "Operator: aten.relu.default\ncnt: 1, ((T([2], f32), {'b': inf, 'a': None}), {})\n"
    ((sample,), _) = read_operator_calls(write(tmp_path, text))
    assert sample.ops[0].args[1] == DictArg((("b", float("inf")), ("a", None)))
