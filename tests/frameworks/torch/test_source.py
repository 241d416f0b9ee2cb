"""Reading and printing GraphNet's torch sources."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from graphnet_datasets.errors import UNKNOWN_ADVICE, SampleError, SourceError, UnknownOperatorError
from graphnet_datasets.frameworks.source_text import MAX_SOURCE_CHARACTERS
from graphnet_datasets.frameworks.tensor_metadata import TensorMeta, parse_tensor_metadata
from graphnet_datasets.frameworks.torch.printer import argument_names, print_source
from graphnet_datasets.frameworks.torch.source import parse_source
from graphnet_datasets.frameworks.torch.text.placeholders import FAULT_EPS, FAULT_SYMBOL, role_of
from graphnet_datasets.sample import Input, Op, Sample, Symbol, Value
from graphnet_datasets.sample.arguments import DictArg, ListArg, Named, Ref, SliceArg
from tests.strategies import runnable_samples, samples

GRAMMAR = (
    " A graph is straight-line code: assignments of calls, operators and literals, and one return; "
    "correct the file or skip the sample."
)


def meta(name: str, **changes: Any) -> TensorMeta:
    return TensorMeta(**({"name": name, "dtype": "float32", "shape": (2, 3)} | changes))


def read(body: str, *names: str, **metadata: TensorMeta) -> Sample:
    """Parse a graph whose `forward` has this body and these arguments (`x` and `y` by default)."""
    arguments = names or ("x", "y")
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    signature = "".join(f", {name}" for name in arguments)
    text = (
        "import torch\nfrom torch import device\n"
        f"class GraphModule(torch.nn.Module):\n    def forward(self{signature}):\n{lines}"
    )
    known = {name.partition(":")[0]: meta(name.partition(":")[0]) for name in arguments}
    return parse_source(text, known | metadata, sample_id="example/graph")


def reread(sample: Sample, names: Any, releases_values: bool = False) -> Sample:
    text = print_source(sample, names, releases_values=releases_values)
    metadata = {}
    for name, each in zip(argument_names(sample, names), sample.inputs, strict=True):
        data = (7).to_bytes(8, "little") if each.role == "symbol" else each.data
        metadata[name] = TensorMeta(name, each.value.dtype or "int64", (), data=data)
        if each.role != "symbol":
            metadata[name] = TensorMeta(
                name, each.value.dtype or "", sample.shape_of(each.value) or (), data=data
            )
    return parse_source(text, metadata, sample_id="example/graph")


def graph(sample: Sample) -> str:
    return repr([(op.target, op.args, op.kwargs) for op in sample.ops]) + repr(sample.outputs)


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_upstream_samples_parse_and_print_to_equal_samples(
    upstream_samples: Path, step: int
) -> None:
    paths = sorted((upstream_samples / "samples").rglob("model.py"))
    assert len(paths) == 142
    for number, path in enumerate(paths[::step]):
        metadata = parse_tensor_metadata(path.with_name("weight_meta.py").read_text())
        sample = parse_source(path.read_text(), metadata, sample_id="a/b", file=str(path))
        assert sample.num_ops > 0
        names = ("canonical", "source")[number % 2]
        again = reread(sample, names, releases_values=names == "source")
        assert graph(again) == graph(sample), path
        assert [each.role for each in again.inputs] == [
            # Canonical names say what an input is only where the annotation does.
            each.role if names == "source" or each.role in ("parameter", "symbol") else "input"
            for each in sample.inputs
        ], path


def test_reading_does_not_import_torch() -> None:
    code = (
        "import sys; from graphnet_datasets.directory import read_directory;"
        "sys.exit('torch' in sys.modules or 'paddle' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
@given(samples("torch"))
def test_any_printable_sample_reads_back(sample: Sample) -> None:
    for names in ("canonical", "source"):
        assert graph(reread(sample, names)) == graph(sample)


@given(runnable_samples())
def test_releasing_values_does_not_change_the_graph(sample: Sample) -> None:
    assert graph(reread(sample, "source", releases_values=True)) == graph(sample)


def test_values_are_released_after_their_last_use() -> None:
    sample = read("a = torch.relu(x)\nb = a + y\nc = b * y\nreturn (b, c)")
    body = print_source(sample, "source", releases_values=True).partition("):\n")[2]
    assert body.split("):\n")[-1] == (
        "        relu_0 = torch.relu(x)\n"
        "        x = None\n"
        "        add_1 = relu_0 + y\n"
        "        relu_0 = None\n"
        "        mul_2 = add_1 * y\n"
        "        y = None\n"
        "        return (add_1, mul_2)\n"
    )


@pytest.mark.parametrize(
    ("expression", "ops"),
    [
        ("x.view(-1, 3)", [Op("torch.Tensor.view", (Ref(0), -1, 3))]),
        ("x.real", [Op("torch.Tensor.real", (Ref(0),))]),
        ("torch._C._nn.linear(x, y)", [Op("torch.nn.functional.linear", (Ref(0), Ref(1)))]),
        ("-x", [Op("operator.neg", (Ref(0),))]),
        ("~x", [Op("operator.invert", (Ref(0),))]),
        ("x @ y", [Op("operator.matmul", (Ref(0), Ref(1)))]),
        ("2 ** x", [Op("operator.pow", (2, Ref(0)))]),
        ("x >= -1.5", [Op("operator.ge", (Ref(0), -1.5))]),
        ("(x * 2) + y", [Op("operator.mul", (Ref(0), 2)), Op("operator.add", (Ref(2), Ref(1)))]),
        (
            "x[0, ..., None, 1:, y]",
            [
                Op(
                    "operator.getitem",
                    (Ref(0), (0, ..., None, SliceArg(1, None, None), Ref(1))),
                )
            ],
        ),
        (
            "x[slice(None, 3)]",
            [Op("operator.getitem", (Ref(0), SliceArg(None, 3, None)))],
        ),
        (
            'x.to(device(type="cuda", index=1), torch.half)',
            [Op("torch.Tensor.to", (Ref(0), Named("device", "cuda:1"), Named("dtype", "float16")))],
        ),
        (
            'x.to(torch.device("cpu"), memory_format=torch.channels_last)',
            [
                Op(
                    "torch.Tensor.to",
                    (Ref(0), Named("device", "cpu")),
                    (("memory_format", Named("memory_format", "channels_last")),),
                )
            ],
        ),
        (
            'torch.full([2, 3], -float("inf"))',
            [Op("torch.full", (ListArg((2, 3)), -math.inf))],
        ),
        ("torch.full((1,), 1+2j)", [Op("torch.full", ((1,), 1 + 2j))]),
        ("torch.add(x, -9223372036854775808)", [Op("torch.add", (Ref(0), -(2**63)))]),
        ("math.ceil(x)", [Op("math.ceil", (Ref(0),))]),
        ("max(x, 3)", [Op("builtins.max", (Ref(0), 3))]),
    ],
)
def test_expressions(expression: str, ops: list[Op]) -> None:
    sample = read(f"z = {expression}\nreturn (z,)")
    assert list(sample.ops) == ops
    assert graph(reread(sample, "canonical")) == graph(sample)


def test_statements_that_change_tensors_become_operators() -> None:
    sample = read(
        "a = x\n"
        "a += y\n"
        "b = a\n"
        "a = x = None\n"
        "b[0] = y\n"
        "b[(1, slice(None, None, None))] *= 2.0\n"
        "del y\n"
        "return {'out': b, 'none': a}"
    )
    assert list(sample.ops) == [
        Op("operator.iadd", (Ref(0), Ref(1))),
        Op("operator.setitem", (Ref(2), 0, Ref(1))),
        Op("operator.getitem", (Ref(2), (1, SliceArg(None, None, None)))),
        Op("operator.imul", (Ref(4), 2.0)),
        Op("operator.setitem", (Ref(2), (1, SliceArg(None, None, None)), Ref(5))),
    ]
    assert sample.outputs == DictArg((("out", Ref(2)), ("none", None)))
    assert graph(reread(sample, "canonical")) == graph(sample)


def test_an_argument_named_device_shadows_the_import() -> None:
    sample = read("y = device + 1\ndevice = None\nreturn (y,)", "device")
    assert sample.ops == (Op("operator.add", (Ref(0), 1)),)
    assert "device: torch.Tensor" in print_source(sample, "source")
    assert graph(reread(sample, "source")) == graph(sample)
    with pytest.raises(SourceError, match="line 5: the value `device` is called"):
        read('return device(type="cpu")', "device")


def test_a_symbolic_integer_becomes_a_symbol() -> None:
    eleven = meta("s1", dtype="int64", shape=(), data=(11).to_bytes(8, "little"))
    sample = read("return x.view(s1, -1)", "s1: torch.SymInt", "x", s1=eleven)
    assert sample.symbols == (Symbol("s1", 11),)
    assert sample.inputs[0] == Input("symbol", Value(), "s1")
    assert sample.provenance.faults == ()


@pytest.mark.parametrize("hint", [0, 4])
def test_a_placeholder_for_a_symbolic_integer_is_marked(hint: int) -> None:
    held = meta("s1", dtype="int64", shape=(), data=hint.to_bytes(8, "little"))
    assert read("return x", "s1: torch.SymInt", "x", s1=held).provenance.faults == (FAULT_SYMBOL,)


def test_an_integer_whose_name_is_no_symbol_gets_one() -> None:
    name = "L_self_" + "modules_" * 10
    held = meta(name, dtype="int64", shape=(), data=(8).to_bytes(8, "little"))
    sample = read(f"return {name}", f"{name}: torch.SymInt", **{name: held})
    assert sample.symbols == (Symbol("n0", 8),)


def test_an_epsilon_recorded_as_zero_is_marked() -> None:
    name = "L_self_modules_norm_eps"
    held = meta(name, dtype="float64", shape=(), data=bytes(8))
    sample = read(f"return x + {name}", "x", name, **{name: held})
    assert sample.provenance.faults == (FAULT_EPS,)
    assert sample.inputs[1].role == "constant"


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("L_self_modules_0_parameters_weight_", "parameter"),
        ("L_self_modules_bn_buffers_running_mean_", "buffer"),
        ("L_instance_modules_fc_parameters_bias_", "parameter"),
        ("L_self_modules_fc_scale", "constant"),
        ("G_np_pi", "constant"),
        ("L_pixel_values_", "input"),
        ("L_stack0_0_", "input"),
    ],
)
def test_roles_follow_names(name: str, role: str) -> None:
    assert role_of(name) == role


def test_printed_names_never_collide() -> None:
    value = Value("float32", (2,))
    sources = ["x", "x", "input_3", "torch", "self", "lambda", "relu_0", "two words", "slice"]
    sample = Sample(
        "example/names",
        "torch",
        "other",
        tuple(Input("input", value, name) for name in sources),
        (Op("torch.relu", (Ref(0),)), Op("torch.relu", (Ref(6),))),
        (Ref(9), Ref(10)),
    )
    names = argument_names(sample, "source")
    assert len(set(names)) == len(sources)
    assert names[0] == "x" and names[6] == "relu_0"
    assert graph(reread(sample, "source")) == graph(sample)


def test_an_attribute_of_a_literal_cannot_be_printed() -> None:
    sample = Sample("a/b", "torch", "other", (), (Op("torch.Tensor.T", (1,)),), None)
    with pytest.raises(SampleError) as caught:
        print_source(sample)
    assert str(caught.value) == (
        "Op 0 of `a/b` reads `torch.Tensor.T` of an argument that is not a single value, "
        "which source text cannot express. Correct its arguments."
    )


BROKEN = [
    ("return 9**9**9**9", "line 5: arithmetic on literals is not part of a graph."),
    ("return [0]*10**10", "line 5: arithmetic on literals is not part of a graph."),
    ("y = 'a' * 10**9\nreturn x", "line 5: arithmetic on literals is not part of a graph."),
    ("return " + "[" * 10_000, "line 5: this is not Python: too many nested parentheses."),
    ("return " + "-" * 100_000 + "1", "line 1: the text is not Python, or is nested too deeply."),
    ("return x" + ".T" * 100_000, "line 1: the text is not Python, or is nested too deeply."),
    ("return x" + ".T" * 100, "line 5: the expression nests deeper than 60 levels."),
    ("return x + 9223372036854775808", "line 5: an integer goes beyond 64 bits."),
    ("return x + -9223372036854775809", "line 5: an integer goes beyond 64 bits."),
    ("return x + 0x" + "f" * 100_000, "line 5: an integer goes beyond 64 bits."),
    ("if x:\n    return y\nreturn x", "line 5: `If` is not part of a straight-line graph."),
    ("for z in x:\n    pass\nreturn x", "line 5: `For` is not part of a straight-line graph."),
    ("while 1:\n    pass\nreturn x", "line 5: `While` is not part of a straight-line graph."),
    ("with x:\n    pass\nreturn x", "line 5: `With` is not part of a straight-line graph."),
    ("import os\nreturn x", "line 5: `Import` is not part of a straight-line graph."),
    ("global z\nreturn x", "line 5: `Global` is not part of a straight-line graph."),
    ("z: int = 3\nreturn x", "line 5: `AnnAssign` is not part of a straight-line graph."),
    ("return lambda: x", "line 5: `Lambda` is not part of a straight-line graph."),
    ("return [z for z in x]", "line 5: `ListComp` is not part of a straight-line graph."),
    ("return (z := x)", "line 5: `NamedExpr` is not part of a straight-line graph."),
    ("return x if x else y", "line 5: `IfExp` is not part of a straight-line graph."),
    ("return f'{x}'", "line 5: `JoinedStr` is not part of a straight-line graph."),
    ("return torch.add(*x)", "line 5: `Starred` is not part of a straight-line graph."),
    ("return x and y", "line 5: `BoolOp` is not part of a straight-line graph."),
    ("return torch.add(x, **y)", "line 5: keywords are unpacked from a dictionary."),
    ("return {1: x}", "line 5: a dictionary has a key that is not text."),
    ("return b'12'", "line 5: bytes are not part of a graph."),
    ("return z", "line 5: the name `z` has no value here."),
    ("z = z + x\nreturn z", "line 5: the name `z` has no value here."),
    ("del x\nreturn x", "line 6: the name `x` has no value here."),
    ("del z\nreturn x", "line 5: `del` is limited to names of the graph."),
    ("x = None\nreturn x.T", "line 6: a literal is used where a value of the graph is needed."),
    ("x = None\nx += y\nreturn x", "line 6: `x` is a literal, which cannot be changed."),
    ("a, b = x\nreturn a", "line 5: an assignment to `Tuple`."),
    ("x.data = y\nreturn x", "line 5: an assignment to `Attribute`."),
    ("torch = x\nreturn torch", "line 5: a value takes the name `torch`, which has a meaning of "
     "its own."),
    ("slice = x\nreturn x", "line 5: a value takes the name `slice`, which has a meaning of its "
     "own."),
    ("return x < y < x", "line 5: a comparison is chained or is not one of == != < <= > >=."),
    ("return x is y", "line 5: a comparison is chained or is not one of == != < <= > >=."),
    ("return 1 < 2", "line 5: a comparison of literals is not part of a graph."),
    ("return x(y)", "line 5: the value `x` is called."),
    ("return x[0](y)", "line 5: only named functions and methods of values can be called."),
    ("return torch.pi_", "line 5: `torch.pi_` is not a constant that a graph may hold."),
    ("return math.__loader__", "line 5: `math.__loader__` is not a constant that a graph may "
     "hold."),
    ("return x.view", "line 5: `torch.Tensor.view` must be called."),
    ("return x.T()", "line 5: `torch.Tensor.T` must be read, not called."),
    ("return device(x)", "line 5: `device` is called with arguments that name no device."),
    ("return device('cpu; import os')", "line 5: `device` is called with arguments that name no "
     "device."),
    ("return slice()", "line 5: `slice` is called with arguments that a graph cannot hold."),
    ("return x\nreturn y", "line 5: `Return` is not part of a straight-line graph."),
    ("z = x", "line 5: the graph does not end in a return."),
    ("return (", "line 5: this is not Python: '(' was never closed."),
]  # fmt: skip


@pytest.mark.parametrize(("body", "problem"), BROKEN, ids=[body[:40] for body, _ in BROKEN])
def test_text_that_is_no_graph_is_refused_with_its_line(body: str, problem: str) -> None:
    with pytest.raises(SourceError) as caught:
        read(body)
    assert str(caught.value) == f"`model.py`, {problem}{GRAMMAR}"


def test_an_integer_of_many_digits_is_refused() -> None:
    with pytest.raises(SourceError, match=r"`model.py`, line \d+: this is not Python: Exceeds the"):
        read("return x + " + "9" * 100_000)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("return torch.foo(x)", "torch.foo"),
        ("return torch.load(x)", "torch.load"),
        ("return torch.ops.load_library('x.so')", "torch.ops.load_library"),
        ("return torch.utils.cpp_extension.load(x)", "torch.utils.cpp_extension.load"),
        ("return x.__class__", "torch.Tensor.__class__"),
        ("return x.__reduce__()", "torch.Tensor.__reduce__"),
        ("return x.share_memory_()", "torch.Tensor.share_memory_"),
        ("return eval('1')", "builtins.eval"),
        ("return __import__('os')", "builtins.__import__"),
        ("return getattr(x, 'T')", "builtins.getattr"),
        ("return operator.attrgetter('T')", "operator.attrgetter"),
        ("return builtins.exec('1')", "builtins.exec"),
    ],
)
def test_an_unknown_operator_is_named_with_its_line(body: str, name: str) -> None:
    with pytest.raises(UnknownOperatorError) as caught:
        read(body)
    assert str(caught.value) == (
        f"`model.py`, line 5: `{name}` is not in the operator table of torch. " + UNKNOWN_ADVICE
    )


HEAD = "import torch\nclass GraphModule(torch.nn.Module):\n    def forward(self, x):\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1: there is no class `GraphModule`."),
        ("import os\n", "line 1: an import of something other than `torch` and its constants "
         "is not allowed outside the graph."),
        ("from torch import nn as os\n", "line 1: an import of something other than `torch` and "
         "its constants is not allowed outside the graph."),
        ("print(1)\n", "line 1: `Expr` is not allowed outside the graph."),
        (HEAD + "        return x\nclass A:\n    pass\n", "line 5: a second class is not allowed "
         "outside the graph."),
        (HEAD + "        return x\n    y = 1\n",
     "line 2: the class `GraphModule` has more than one `forward`."),
        (HEAD.replace("forward", "backward") + "        return x\n", "line 3: the class has no "
         "method `forward`."),
        (HEAD.replace("x)", "x=[])") + "        return x\n",
     "line 3: `forward` has parameters other than `self` and plain arguments."),
        (HEAD.replace("x)", "*x)") + "        return x\n",
     "line 3: `forward` has parameters other than `self` and plain arguments."),
        (HEAD.replace("x)", "w)") + "        return w\n", "line 3: the argument `w` has no class "
         "in `weight_meta.py` or `input_meta.py`."),
        (HEAD.replace("class", "@x\nclass") + "        return x\n", "line 3: the class "
         "`GraphModule` is decorated."),
    ],
)  # fmt: skip
def test_a_module_that_is_no_graph_is_refused(text: str, problem: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse_source(text, {"x": meta("x")}, sample_id="a/b")
    assert str(caught.value) == f"`model.py`, {problem}{GRAMMAR}"


def test_ten_megabytes_of_garbage_are_refused_before_they_are_parsed() -> None:
    with pytest.raises(SourceError) as caught:
        parse_source("\x00garbage" * 1_250_000, {}, sample_id="a/b", file="x/model.py")
    assert str(caught.value) == (
        f"`x/model.py` has 10000000 characters; at most {MAX_SOURCE_CHARACTERS} are accepted."
    )


def test_dense_text_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(SourceError) as caught:
        parse_source("a=1\n" * 2_000_000, {}, sample_id="a/b")
    assert str(caught.value) == (
        "`model.py` has 4000000 line ends and punctuation marks; at most 400000 are accepted."
    )


def test_long_f_strings_are_refused_before_they_are_parsed() -> None:
    """Python parses them in quadratic time."""
    for text in ("f'" + "{1}" * 100_000 + "'", "print(rF'" + "{1}" * 100_000 + "')"):
        with pytest.raises(SourceError, match="line 1: the text contains f-strings and too many"):
            parse_source(text, {}, sample_id="a/b")


def test_null_bytes_are_refused() -> None:
    with pytest.raises(SourceError, match=r"`model\.py`, line 1: "):
        parse_source("import torch\x00\n", {}, sample_id="a/b")


def test_a_context_of_autograd_that_nothing_reads_is_left_out() -> None:
    sample = read("c = torch.autograd.function.FunctionCtx()\nc = None\nreturn torch.relu(x)")
    assert [op.target for op in sample.ops] == ["torch.relu"]
    unread = read("c = torch.autograd.function.FunctionCtx()\nreturn torch.relu(x)")
    assert unread == sample


@pytest.mark.parametrize(
    "use", ["return c", "return torch.add(x, c)", "return c.T", "c += x\nreturn x"]
)
def test_a_context_of_autograd_that_is_read_is_refused(use: str) -> None:
    with pytest.raises(SourceError, match=r"`c` is a context of autograd, which is used\."):
        read(f"c = torch.autograd.function.FunctionCtx()\n{use}")


@pytest.mark.parametrize(
    ("text", "size"), [("[2, 3]", (2, 3)), ("(4,)", (4,)), ("[]", ()), ("[2, x]", (2, Ref(0)))]
)
def test_a_size_is_the_tuple_that_it_is(text: str, size: tuple) -> None:
    assert read(f"return x.view(torch.Size({text}))").ops[0].args == (Ref(0), size)


@pytest.mark.parametrize("text", ["x", "", "2", "[2], [3]", "{'a': 2}"])
def test_a_size_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(SourceError, match=r"`torch\.Size` is called with something other"):
        read(f"return x.view(torch.Size({text}))")


def test_a_value_may_be_named_device() -> None:
    sample = read("device = x.device\ny = x.to(device)\ndevice = None\nreturn y")
    assert [op.target for op in sample.ops] == ["torch.Tensor.device", "torch.Tensor.to"]
    assert sample.ops[1].args == (Ref(0), Ref(len(sample.inputs)))
    with pytest.raises(SourceError, match="`device` is called"):
        read("device = x.device\nreturn x.to(device('cpu'))")
