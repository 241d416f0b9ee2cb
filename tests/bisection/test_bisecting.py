"""A bisection from its beginning to its files: what is written, continued, refused."""

from __future__ import annotations

import ast
import dataclasses
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from graphnet_datasets import Sample
from graphnet_datasets.bisection import Budget, Progress, bisect
from graphnet_datasets.bisection.bisecting import default_settings
from graphnet_datasets.bisection.reproducer import ELEMENTS_FILE, print_reproducer
from graphnet_datasets.bisection.trials import TRIALS_FILE, TrialRunner
from graphnet_datasets.compilers import list_entries, make_compiler
from graphnet_datasets.errors import BisectionError, UnknownCompilerError
from graphnet_datasets.sample import Input, Op, Statistics, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.storage.selection import select_rows
from graphnet_datasets.storage.table import read_table
from tests.bisection.test_planted import PLANTED

X = Input("input", Value("float32", (6, 8)), statistics=Statistics(0.0, 1.0))
W = Input("parameter", Value("float32", (8, 8)), statistics=Statistics(0.0, 0.3))
BLOCK = Sample(
    "test/block",
    "torch",
    "other",
    (X, W),
    (
        Op("torch.nn.functional.linear", (Ref(0), Ref(1))),
        Op("torch.nn.functional.gelu", (Ref(2),)),
        Op("torch.nn.functional.linear", (Ref(3), Ref(1))),
        Op("torch.nn.functional.gelu", (Ref(4),)),
        Op("torch.tanh", (Ref(5),)),
    ),
    (Ref(6),),
)
SETTINGS = default_settings(timeouts_s={"run": 600.0}, num_threads=1, memory_limit_bytes=2**31)
FUSED, GELU = f"{PLANTED}:linear_gelu_linear", f"{PLANTED}:gelu_by_tanh"


@pytest.fixture(scope="module")
def runner() -> Iterator[TrialRunner]:
    found = TrialRunner("cpu", SETTINGS)
    yield found
    found.close()


def test_the_result_is_a_sample_with_its_parent(runner: TrialRunner, tmp_path: Path) -> None:
    found = bisect(BLOCK, FUSED, tmp_path, runner=runner)
    assert found.ops == (0, 1, 2)
    assert found.sample.id == "test/block/minimal"
    assert found.sample.provenance.parent_id == "test/block"
    assert found.sample.kind == "subgraph"
    assert found.is_minimal and found.num_trials > 3
    written = found.write(tmp_path)
    (row,) = read_table(written["minimal.parquet"]).to_pylist()
    assert Sample.from_row(row) == found.sample
    assert written["minimal.svg"].read_text().startswith("<svg")
    summary = json.loads(written["bisection.json"].read_text())
    assert summary["ops"] == [0, 1, 2] and summary["failure"] == "wrong"


DRAWING = dataclasses.replace(
    BLOCK,
    id="test/drawing",
    ops=(
        Op("torch.nn.functional.linear", (Ref(0), Ref(1))),
        Op("torch.nn.functional.gelu", (Ref(2),)),
        Op("torch.nn.functional.dropout", (Ref(3), 0.5, True)),
        Op("torch.nn.functional.linear", (Ref(4), Ref(1))),
        Op("torch.tanh", (Ref(5),)),
    ),
)


@pytest.mark.slow
def test_a_dropout_at_another_rate_is_found(runner: TrialRunner, tmp_path: Path) -> None:
    result = bisect(DRAWING, f"{PLANTED}:drops_less", tmp_path, runner=runner)
    assert result.ops == (2,)
    assert "random outputs whose distribution is not that of eager's" in str(result.failure)
    (first, *_) = (tmp_path / TRIALS_FILE).read_text().splitlines()
    assert float(json.loads(first)["p_value"]) < 1e-6
    text = result.write(tmp_path)["test_minimal.py"].read_text()
    assert "from graphnet_datasets import run" in text


def test_another_stream_is_no_failure(runner: TrialRunner, tmp_path: Path) -> None:
    with pytest.raises(BisectionError, match="does not fail"):
        bisect(DRAWING, f"{PLANTED}:other_stream", tmp_path, runner=runner)


SORTING = dataclasses.replace(
    BLOCK,
    id="test/sorting",
    ops=(
        Op("torch.mul", (Ref(0), 2.0)),
        Op("torch.Tensor.long", (Ref(2),), results=(Value("int64", (6, 8)),)),
        Op("torch.argsort", (Ref(3),)),
        Op("torch.mul", (Ref(4), 2)),
    ),
    outputs=(Ref(4), Ref(5)),
)


def test_another_order_of_tied_elements_is_no_failure(runner: TrialRunner, tmp_path: Path) -> None:
    with pytest.raises(BisectionError, match="does not fail"):
        bisect(SORTING, f"{PLANTED}:ties_backwards", tmp_path, runner=runner)
    (line,) = (tmp_path / TRIALS_FILE).read_text().splitlines()
    assert "does not specify" in json.loads(line)["message"]


def test_positions_that_do_not_sort_are_found(runner: TrialRunner, tmp_path: Path) -> None:
    result = bisect(SORTING, f"{PLANTED}:sorts_backwards", tmp_path, runner=runner)
    assert result.ops == (2,)


@pytest.mark.slow
def test_the_test_that_is_written_shows_the_failure(runner: TrialRunner, tmp_path: Path) -> None:
    written = bisect(BLOCK, FUSED, tmp_path, runner=runner).write(tmp_path)
    path = written["test_minimal.py"]
    imported = {
        alias.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert imported == {"base64", "importlib.util", "sys", "torch", "zlib"}
    ended = subprocess.run([sys.executable, path], capture_output=True, text=True)
    assert ended.returncode == 1 and "Tensor-likes are not close" in ended.stderr
    right = path.with_name("right.py")  # under another compiler the same test passes
    right.write_text(path.read_text().replace("linear_gelu_linear", "grouped_convolution"))
    ended = subprocess.run([sys.executable, right], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_values_that_the_failure_needs_come_along(runner: TrialRunner, tmp_path: Path) -> None:
    """Rows beyond 127 are read wrongly; the tokens are stored, and stay."""
    tokens = Input("input", Value("int64", (4,)), data=bytes(8 * 3) + b"\xc8" + bytes(7))
    table = Input("parameter", Value("float32", (256, 4)), statistics=Statistics(0.0, 1.0))
    ops = (
        Op("torch.nn.functional.embedding", (Ref(0), Ref(1))),
        Op("torch.relu", (Ref(2),)),
    )
    sample = Sample("test/table", "torch", "nlp", (tokens, table), ops, (Ref(3),))
    found = bisect(sample, f"{PLANTED}:high_rows", tmp_path, runner=runner)
    assert found.ops == (0,)
    assert found.sample.inputs[0].data is not None
    assert b"\xc8" in found.sample.inputs[0].data


@pytest.mark.slow
def test_a_stopped_bisection_goes_on_where_it_was(runner: TrialRunner, tmp_path: Path) -> None:
    whole = bisect(BLOCK, FUSED, tmp_path / "whole", runner=runner)
    for trials in (2, 3):
        first = bisect(
            BLOCK, FUSED, tmp_path / "again", runner=runner, budget=Budget(trials=trials)
        )
        assert not first.is_minimal and first.num_trials == trials
    with (tmp_path / "again" / TRIALS_FILE).open("a") as file:
        file.write('{"trial": "of a process that was ki')
    rest = bisect(BLOCK, FUSED, tmp_path / "again", runner=runner)
    assert rest.num_known == 5 and rest.num_trials == whole.num_trials - 5
    assert (rest.sample, rest.is_minimal) == (whole.sample, True)
    none = bisect(BLOCK, FUSED, tmp_path / "again", runner=runner, budget=Budget(trials=0))
    assert none.num_trials == 0 and none.sample == whole.sample


def test_progress_tells_trials_and_operators_left(runner: TrialRunner, tmp_path: Path) -> None:
    told: list[Progress] = []
    found = bisect(BLOCK, FUSED, tmp_path, runner=runner, on_progress=told.append)
    assert next(each.num_trials for each in told if not each.num_known) == 1
    assert told[-1].num_trials == found.num_trials
    assert told[0].num_ops == 5 and told[-1].num_ops == 3


def test_the_first_of_several_culprits_is_enough(runner: TrialRunner, tmp_path: Path) -> None:
    found = bisect(BLOCK, GELU, tmp_path, t=-5.0, runner=runner)
    assert found.targets == ("torch.nn.functional.gelu",)


def test_a_compiler_that_does_not_fail_is_said_so(runner: TrialRunner, tmp_path: Path) -> None:
    with pytest.raises(BisectionError, match=r"`eager` does not fail on `test/block`: .* bit for"):
        bisect(BLOCK, "eager", tmp_path, runner=runner)
    with pytest.raises(BisectionError, match=r"`eager` is not slower than 0\.1 on `test/block`"):
        bisect(BLOCK, "eager", tmp_path, slower_than=0.1, runner=runner)


def test_a_graph_that_eager_cannot_run_is_said_so(runner: TrialRunner, tmp_path: Path) -> None:
    broken = dataclasses.replace(BLOCK, inputs=(X, dataclasses.replace(W, value=X.value)))
    with pytest.raises(BisectionError, match="`test/block` does not run under eager"):
        bisect(broken, GELU, tmp_path, runner=runner)


def test_a_budget_that_allows_no_trial_is_said_so(runner: TrialRunner, tmp_path: Path) -> None:
    with pytest.raises(BisectionError, match="The budget ran out before"):
        bisect(BLOCK, FUSED, tmp_path, runner=runner, budget=Budget(seconds=0.0))


def test_a_compiler_that_there_is_not(runner: TrialRunner, tmp_path: Path) -> None:
    with pytest.raises(UnknownCompilerError, match="There is no compiler `nothing`"):
        bisect(BLOCK, "nothing", tmp_path, runner=runner)


@pytest.mark.slow
def test_many_elements_lie_beside_the_test(runner: TrialRunner, tmp_path: Path) -> None:
    wide = dataclasses.replace(
        BLOCK,
        inputs=(
            dataclasses.replace(X, value=Value("float32", (2, 256))),
            dataclasses.replace(W, value=Value("float32", (256, 256))),
        ),
    )
    found = bisect(wide, FUSED, tmp_path, runner=runner, shrinks_sizes=False)
    found.write(tmp_path)
    assert (tmp_path / ELEMENTS_FILE).stat().st_size == 4 * (2 * 256 + 256 * 256)
    path = tmp_path / "test_minimal.py"
    ended = subprocess.run([sys.executable, path], capture_output=True, text=True)
    assert ended.returncode == 1 and "Tensor-likes are not close" in ended.stderr


@pytest.mark.slow
def test_paddle_is_bisected_too(tmp_path: Path) -> None:
    pytest.importorskip("paddle", reason="paddlepaddle is not installed")
    (row,) = select_rows("paddle/mlp")
    with pytest.raises(BisectionError, match=r"`paddle-eager` does not fail on `paddle/mlp`"):
        bisect(Sample.from_row(row), "paddle-eager", tmp_path, settings=SETTINGS)


NAMES = [
    each.name for each in list_entries() if each.framework == "torch" and each.origin == "built in"
]


@pytest.mark.parametrize("name", NAMES)
def test_the_text_for_each_compiler_is_python(
    name: str, runner: TrialRunner, tmp_path: Path
) -> None:
    found = bisect(BLOCK, FUSED, tmp_path, runner=runner, budget=Budget(trials=1))
    candidate = dataclasses.replace(found.candidate, compiler=name, options={})
    text, _ = print_reproducer(found.sample, found.failure, candidate, "cpu", SETTINGS, "x.parquet")
    ast.parse(text)
    assert all(len(line) < 110 for line in text.splitlines())


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("torchscript", {}),
        pytest.param("aot_eager", {}, marks=pytest.mark.slow),
        pytest.param("onnxruntime", {}, marks=pytest.mark.slow),
        pytest.param("openvino", {"precision": "f32"}, marks=pytest.mark.slow),
    ],
)
def test_the_text_calls_the_compiler_as_this_library_does(
    name: str, chosen: dict[str, str], runner: TrialRunner, tmp_path: Path
) -> None:
    try:
        options = make_compiler(name, options=chosen).options
    except Exception as error:  # a package that is not installed
        pytest.skip(f"`{name}` cannot run here: {error}")
    found = bisect(BLOCK, FUSED, tmp_path, runner=runner, budget=Budget(trials=2))
    candidate = dataclasses.replace(found.candidate, compiler=name, options=options)
    text, _ = print_reproducer(found.sample, found.failure, candidate, "cpu", SETTINGS, "x.parquet")
    path = tmp_path / "test_it.py"
    path.write_text(text)
    ended = subprocess.run([sys.executable, path], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "It does not fail here." in ended.stdout
