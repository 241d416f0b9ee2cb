"""A third framework, which a package adds by its entry point, goes the whole way of the data."""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

from graphnet_datasets import (
    Sample,
    make_inputs,
    materialize,
    run,
    speedup_score,
    write_directory,
)
from graphnet_datasets.analysis.costs import measure_costs
from graphnet_datasets.benchmark import TimingSettings
from graphnet_datasets.compilers import usual_compilers
from graphnet_datasets.directory.record import parse_record
from graphnet_datasets.errors import SampleError, UnknownFrameworkError, UnknownOperatorError
from graphnet_datasets.frameworks import (
    find_results,
    framework_named,
    framework_names,
    module,
    offers,
    print_source,
)
from graphnet_datasets.frameworks.protocols import MODULES
from graphnet_datasets.inputs import find_roles
from graphnet_datasets.inputs.consumers import indexing_of
from graphnet_datasets.sample import Input, Op, Statistics, Value, vocabulary
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.storage.table import read_table, write_table
from graphnet_datasets.validation import validate
from tests.distributions import write_distribution

ROOT = Path(__file__).parents[2]


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sample]:
    """A sample of the framework `toy`, which this process and its children find."""
    site = tmp_path / "packages"
    write_distribution(site, "toy", vocabulary.FRAMEWORK_GROUP, {"toy": "tests.frameworks.toy"})
    monkeypatch.syspath_prepend(str(site))
    paths = [str(site), str(ROOT), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    vocabulary.framework_entry_points.cache_clear()
    statistics = Statistics(0.0, 0.3, -1.0, 1.0)
    yield Sample(
        "toy/layer", "toy", "other",  # type: ignore[arg-type]
        (
            Input("input", Value("float32", (32, 64)), statistics=statistics),
            Input("parameter", Value("float32", (64, 16)), statistics=statistics),
            Input("parameter", Value("float32", (16,)), statistics=statistics),
        ),
        (
            Op("toy.matmul", (Ref(0), Ref(1))),
            Op("toy.add", (Ref(3), Ref(2))),
            Op("toy.tanh", (Ref(4),)),
        ),
        Ref(5),
    )  # fmt: skip
    monkeypatch.undo()
    vocabulary.framework_entry_points.cache_clear()


def test_a_third_framework_goes_from_row_to_score(toy: Sample, tmp_path: Path) -> None:
    assert framework_names() == ("torch", "paddle", "toy")
    path = write_table([toy], tmp_path / "toy.parquet")
    (row,) = read_table(path).to_pylist()
    sample = Sample.from_row(row)
    assert sample == toy
    inputs = make_inputs(sample)
    assert {type(each) for each in inputs.values()} == {np.ndarray}
    expected = np.tanh(inputs["input_0"] @ inputs["parameter_0"] + inputs["parameter_1"])
    assert np.array_equal(materialize(sample)(**inputs), expected)
    runs = run(
        path,
        compiler="eager",
        device="cpu",
        out=tmp_path / "runs",
        timing=TimingSettings(budget_s=0.5),
    )
    (record,) = list(runs)
    assert (record["framework"], record["status"]) == ("toy", "ok"), record["error_message"]
    assert (record["min_t"], record["clock"]) == (-np.inf, "toy_ticks")
    assert speedup_score(runs, p=0.1, b=0.1).at(-5)["lambda"] == 1.0


def test_missing_features_of_a_framework_are_reported(toy: Sample) -> None:
    assert print_source(toy) == "toy.matmul\ntoy.add\ntoy.tanh"
    with pytest.raises(UnknownFrameworkError) as caught:
        find_results(toy)
    assert str(caught.value) == (
        "The framework `toy` has no module `results` (`find_results`, `find_unknown`: the results "
        "of each operator, without running it)."
    )
    assert measure_costs(toy) is None
    outcomes = {each.check: each for each in validate(toy).results}
    assert outcomes["decomposable"].outcome == "skipped"
    assert outcomes["decomposable"].reason == "No check of this name runs samples of `toy`."
    assert outcomes["runnable"].outcome == "passed"
    assert outcomes["custom_operators_accessible"].outcome == "passed"


def test_a_third_framework_limits_its_indices(toy: Sample) -> None:
    table, index = (
        Input("parameter", Value("float32", (5, 3))),
        Input("input", Value("int64", (8,))),
    )
    op = Op("toy.take", (Ref(0), Ref(1), 0))
    sample = dataclasses.replace(toy, inputs=(table, index), ops=(op,), outputs=Ref(2))
    assert (find_roles(sample)[1].low, find_roles(sample)[1].high) == (0, 4)
    inputs = make_inputs(sample, mode="fresh")
    assert materialize(sample)(**inputs).shape == (8, 3)


def test_a_third_framework_is_taken_for_none_of_ours(toy: Sample, tmp_path: Path) -> None:
    assert indexing_of("toy", Op("toy.embedding", (Ref(0), Ref(1)))) is None
    assert indexing_of("torch", Op("torch.embedding", (Ref(0), Ref(1)))) is not None
    record = parse_record('{"framework": "toy"}', "a/graph_net.json")
    assert record["framework"] == "toy"
    with pytest.raises(UnknownFrameworkError, match="The framework `toy` has no module `source`"):
        write_directory(toy, tmp_path / "a")
    with pytest.raises(SampleError, match="accepted: torch, paddle, toy"):
        dataclasses.replace(toy, framework="jax")  # type: ignore[arg-type]
    assert usual_compilers("toy") == ("eager", "eager")
    assert usual_compilers("paddle")[0] == "paddle-eager"


@pytest.mark.usefixtures("toy")
def test_an_operator_that_its_table_lacks_is_refused() -> None:
    with pytest.raises(UnknownOperatorError):
        module("toy", "operators").lookup("toy.exec")


def test_an_unknown_framework_is_refused_by_name() -> None:
    with pytest.raises(UnknownFrameworkError) as caught:
        framework_named("tensorflow")
    assert str(caught.value) == (
        "There is no framework `tensorflow`. There are torch, paddle; packages add frameworks "
        "through the entry point group `graphnet_datasets.frameworks`."
    )


@pytest.mark.parametrize("name", ["torch", "paddle"])
def test_both_frameworks_offer_the_whole_contract(name: str) -> None:
    lacking = {part for part in MODULES if not offers(name, part)}
    validation = {"validation"}  # built in beside the checks that need no framework
    others = {"profiling", "regions", "fusion", "peaks"} if name == "paddle" else set()
    assert lacking == validation | others


@pytest.mark.parametrize("name", ["torch", "paddle", "toy"])
@pytest.mark.parametrize("part", MODULES)
@pytest.mark.usefixtures("toy")
def test_modules_have_the_functions_of_their_protocols(name: str, part: str) -> None:
    if not offers(name, part):
        return
    backend, protocol = module(name, part), MODULES[part]
    names = [*protocol.__annotations__, *(n for n in vars(protocol) if not n.startswith("_"))]
    for function in names:
        assert hasattr(backend, function), f"{name}.{part} lacks {function}."
        if isinstance(stated := getattr(protocol, function, None), FunctionType):
            accepted = inspect.signature(getattr(backend, function)).parameters.values()
            if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in accepted):
                parameters = [*inspect.signature(stated).parameters.values()][1:]
                named = {p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY}
                assert named - {"options"} <= {p.name for p in accepted}, f"{name}.{part}"


@pytest.mark.parametrize("name", ["torch", "paddle"])
def test_pyright_compares_each_module_with_its_protocol(name: str) -> None:
    text = (Path(__file__).parent / "conformance.py").read_text()
    for part, protocol in MODULES.items():
        if part == "validation" or offers(name, part):
            assert f"{name}_{part}_module: protocols.{protocol.__name__} = {name}_" in text


def test_only_modules_of_the_contract_are_imported() -> None:
    with pytest.raises(ValueError, match="is not a module of a framework"):
        module("torch", "building.custom_operators")


def test_an_untested_version_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    torch = framework_named("torch")
    torch.warn_if_untested()
    assert caplog.text == ""
    dataclasses.replace(torch, newest_tested=(2, 0)).warn_if_untested()
    assert "is newer than 2.0, the newest version that graphnet-datasets" in caplog.text
    caplog.clear()
    dataclasses.replace(torch, newest_tested=(10, 0)).warn_if_untested()
    dataclasses.replace(torch, newest_tested=None).warn_if_untested()
    dataclasses.replace(torch, distributions=("not-installed",)).warn_if_untested()
    assert caplog.text == ""
