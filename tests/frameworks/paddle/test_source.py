"""Reading and printing paddle's `model.py`: real files, round trips, and hostile text."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from graphnet_datasets.errors import GraphNetError, SourceError, UnknownOperatorError
from graphnet_datasets.frameworks.paddle.printer import argument_names, print_source
from graphnet_datasets.frameworks.paddle.source import parse_graph, parse_source
from graphnet_datasets.frameworks.tensor_metadata import TensorMeta, parse_tensor_metadata
from graphnet_datasets.sample import Op, Sample, Value
from graphnet_datasets.sample.arguments import ListArg, Named, Ref

from ...strategies import samples

HEAD = """
import paddle

class GraphModule(paddle.nn.Layer):
    def __init__(self):
        super().__init__()

    def forward(self, parameter_0, data_0):
"""
CALL = "paddle._C_ops.layer_norm(data_0, parameter_0, parameter_0, float('1e-05'), 1)"
FILL = "lambda out: out if isinstance(out, (list, tuple)) else (out, None, None)"


def graph(body: str) -> tuple[tuple[str, ...], tuple[Op, ...], Any]:
    lines = [f"        {line}" for line in body.strip().splitlines()]
    return parse_graph(HEAD + "\n".join(lines))


def read(folder: Path) -> Sample:
    metadata: dict[str, TensorMeta] = {}
    for name in ("weight_meta.py", "input_meta.py"):
        metadata |= parse_tensor_metadata((folder / name).read_text(), name)
    return parse_source((folder / "model.py").read_text(), metadata, sample_id="a/b", task="cv")


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_real_samples_parse_print_and_parse_again(upstream_samples: Path, step: int) -> None:
    folders = [path.parent for path in sorted(upstream_samples.glob("paddle_samples/**/model.py"))]
    assert len(folders) == 59
    for folder in folders[::step]:
        sample = read(folder)
        assert sample.num_ops > 0
        for names in ("canonical", "source"):
            again = parse_graph(print_source(sample, names))
            assert again == (argument_names(sample, names), sample.ops, sample.outputs), folder


def test_a_real_sample_in_detail(upstream_samples: Path) -> None:
    sample = read(upstream_samples / "paddle_samples" / "PaddleX" / "ResNet18")
    assert sample.framework == "paddle"
    roles = [each.role for each in sample.inputs]
    assert (roles.count("parameter"), roles.count("buffer"), roles.count("input")) == (65, 42, 1)
    norm = next(op for op in sample.ops if op.target == "paddle._C_ops.batch_norm")
    assert [value.dtype for value in norm.results or ()] == ["float32"] * 5 + ["uint8"]
    assert sample.ops[-1].results == (Value("float32", None),)  # -1x102xf32
    image = sample.inputs[-1]
    assert image.source_name == "data_0"
    assert image.value == Value("float32", (64, 3, 224, 224))
    assert image.statistics is not None
    assert image.statistics.max == 2.64


@pytest.mark.slow
@given(samples("paddle"))
def test_any_sample_prints_as_text_that_parses_to_it(sample: Sample) -> None:
    def without_strides(value: Value) -> Value:
        return dataclasses.replace(value, stride=None)

    ops = tuple(
        dataclasses.replace(
            op,
            module="",
            results=None if op.results is None else tuple(map(without_strides, op.results)),
        )
        for op in sample.ops
    )
    names, parsed, outputs = parse_graph(print_source(sample))
    assert names == sample.input_names
    assert parsed == ops
    assert outputs == sample.outputs


def test_unpacking_gives_one_item_for_each_result_that_is_used() -> None:
    _, ops, outputs = graph(
        f"""
# pd_op.layer_norm: (2x3xf32, 2xf32, 2xf32) <- (2x3xf32, 3xf32, 3xf32)
a, b, c = (lambda x, f: f(x))({CALL}, {FILL})
del data_0
return (c, a)
"""
    )
    two, one = Value("float32", (2,)), Value("float32", (2, 3))
    assert [(op.target, op.args[1:2], op.results) for op in ops[1:]] == [
        ("operator.getitem", (0,), (one,)),
        ("operator.getitem", (2,), (two,)),
    ]
    assert ops[0].results == (one, two, two)
    assert outputs == (Ref(4), Ref(3))


def test_rnn_is_unpacked_with_the_result_it_does_not_give() -> None:
    _, ops, _ = graph(
        """
a, b, c, d = (lambda x, f: f(x))(paddle._C_ops.rnn(data_0), lambda out: out if isinstance(out, \
(list, tuple)) else (out, None, None, None)) + (None,)
(e, f) = c
return (a, f)
"""
    )
    assert [op.args for op in ops[1:]] == [(Ref(2), 0), (Ref(2), 2), (Ref(4), 1)]


def test_lists_copies_and_idioms_become_arguments() -> None:
    _, ops, outputs = graph(
        """
full_int_array_0 = [1, -1]
assign_0 = data_0
combine_0 = [assign_0, parameter_0]
split_0, split_1 = combine_0
concat_0 = paddle._C_ops.concat([split_1, combine_0[0]], full_int_array_0)
one_hot_0 = paddle._C_ops.one_hot(concat_0 % paddle.cast(data_0, concat_0.dtype), data_0)
full_0 = paddle._C_ops.full([], float("-inf"), paddle.float32, paddle.core.CPUPlace())
reshape_0 = paddle._C_ops.reshape(full_0, [x.reshape([]) for x in combine_0])
share_data_0 = reshape_0.detach()
return share_data_0, one_hot_0
"""
    )
    assert ops[0].args == (ListArg((Ref(0), Ref(1))), ListArg((1, -1)))
    assert [op.target for op in ops[1:5]] == [
        "paddle.Tensor.dtype",
        "paddle.cast",
        "operator.mod",
        "paddle._C_ops.one_hot",
    ]
    assert ops[5].args == (
        ListArg(()),
        float("-inf"),
        Named("dtype", "float32"),
        Named("place", "cpu"),
    )
    assert ops[8].args == (Ref(7), ListArg((Ref(8), Ref(9))))
    assert ops[9].target == "paddle.Tensor.detach"
    assert outputs == (Ref(11), Ref(6))


TAIL = (
    ". A graph is straight-line code: assignments of calls, operators and literals, and one "
    "return; correct the file or skip the sample."
)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("a = 9**9**9**9", "an operator combines literals, which a graph never does"),
        ("a = [0] * 10**10", "an operator combines literals, which a graph never does"),
        ("a = data_0.__class__", "the attribute `__class__` is not known"),
        ("a = missing", "the name `missing` has no value there"),
        ("for x in data_0: pass", "`For` is not a statement of a graph"),
        ("exec('1')", "`Expr` is not a statement of a graph"),
        ("a.b = data_0", "the left side of an assignment is not a name or names"),
        ("del a", "`del` names what does not exist"),
        ("a, b = [data_0]", "1 values are unpacked into 2 names"),
        ("a, b = 3", "only a list or the results of an operator can be unpacked"),
        ("a = b'1'", "a literal of type `bytes` is not an argument"),
        ("a = f'{data_0}'", "`JoinedStr` is not an expression of a graph"),
        ("a = data_0 if data_0 else parameter_0", "`IfExp` is not an expression of a graph"),
        ("a = [y for y in data_0]", "a list comprehension is not an expression of a graph"),
        ("a = float('nano')", "`float` is called with other than the text of a number"),
        ("a = paddle._C_ops.relu(**{})", "keywords are unpacked from a dictionary"),
        (
            f"a, b = (lambda x, f: f(x))({CALL}, {FILL})",
            "lambdas are allowed only to unpack results",
        ),
    ],
)
def test_text_that_is_no_graph_is_refused_with_its_line(statement: str, problem: str) -> None:
    with pytest.raises(SourceError) as caught:
        graph(f"{statement}\nreturn data_0")
    assert str(caught.value) == f"`model.py`, line 9: {problem}{TAIL}"


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("__import__('os')", "__import__"),
        ("paddle.load('x')", "paddle.load"),
        ("paddle._C_ops.run_program(data_0)", "paddle._C_ops.run_program"),
        ("data_0.register_hook(1)", "paddle.Tensor.register_hook"),
        ("(lambda: 1)()", ""),
        ("float('1' * 9)", "float"),
    ],
)
def test_an_unknown_operator_is_refused_with_its_line(call: str, name: str) -> None:
    with pytest.raises(UnknownOperatorError) as caught:
        graph(f"a = {call}\nreturn a")
    assert str(caught.value).startswith(
        f"`model.py`, line 9: `{name}` is not in paddle's operator table. "
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "`model.py`, line 1: there is no class `GraphModule`" + TAIL),
        ("import os\n", "`model.py`, line 1: a `Import` is not allowed outside the graph" + TAIL),
        ("x = (", "`model.py`, line 1: this is not Python: '(' was never closed" + TAIL),
        (
            HEAD.replace("super().__init__()", "self.x = paddle.load('x')") + "        return 1",
            "`model.py`, line 4: the class `GraphModule` is a live model, not a graph: it has "
            "more than a `forward` and an `__init__` that only calls `super().__init__()`" + TAIL,
        ),
        (HEAD + "        pass", "`model.py`, line 9: the graph ends without a `return`" + TAIL),
    ],
)
def test_a_file_that_is_no_graph_is_refused(text: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse_graph(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "bomb",
    [
        "(" * 10_000 + ")" * 10_000,
        "[" * 10_000 + "]" * 10_000,
        "-" * 50_000 + "1",
        "1" * 100_000,
        "data_0" + " % data_0" * 20_000,
        "data_0" + ".detach()" * 20_000,
        "[" + "0," * 500_000 + "]",
    ],
    ids=lambda bomb: bomb[:8],
)
def test_bombs_are_refused_before_they_cost_anything(bomb: str) -> None:
    with pytest.raises(GraphNetError):
        graph(f"a = {bomb}\nreturn a")


def test_garbage_of_ten_megabytes_is_refused() -> None:
    with pytest.raises(SourceError, match=r"has 10000000 characters; at most 8388608 are accepted"):
        parse_graph("\x01\xff" * 5_000_000)


def test_an_argument_without_metadata_is_named() -> None:
    text = HEAD + "        return data_0"
    metadata = {"data_0": TensorMeta("data_0", "float32", (2,))}
    with pytest.raises(SourceError) as caught:
        parse_source(text, metadata, sample_id="a", file="x/model.py")
    assert str(caught.value) == (
        "`x/model.py`, line 1: the argument `parameter_0` has no class in `weight_meta.py` or "
        "`input_meta.py`" + TAIL
    )
