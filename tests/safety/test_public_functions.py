"""Public functions raise errors of this library on whatever rows, records and folders they get."""

from __future__ import annotations

import contextlib
import inspect
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphnet_datasets
from graphnet_datasets import Sample
from graphnet_datasets.benchmark import read_runs
from graphnet_datasets.errors import CaptureError, GraphNetError, MemoryLimitError, RunError
from graphnet_datasets.report import write_page, write_site
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.storage.loading import STARTER
from graphnet_datasets.storage.table import read_table
from tests.tables import chain

REPOSITORY = Path(__file__).parents[2]
LIMIT_BYTES = 100_000_000


@pytest.fixture(scope="module")
def mutations() -> Iterator[Any]:
    """The module of the fuzzer that changes rows, files and folders by chance."""
    sys.path.insert(0, str(REPOSITORY / "benchmarks"))
    try:
        from fuzzing import mutations

        yield mutations
    finally:
        sys.path.remove(str(REPOSITORY / "benchmarks"))


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    filters = [("num_ops", "<", 12), ("input_bytes", "<", 100_000), ("framework", "=", "torch")]
    table = read_table(STARTER / "other" / "train-0000.parquet", filters=filters)
    return [*table.slice(0, 8).to_pylist(), sample_to_row(chain("a/b", 3))]


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    return read_runs(STARTER / "runs").slice(0, 12).to_pylist()


ON_ROWS: dict[str, Callable[[Any, Path], Any]] = {
    "Sample": lambda row, _: Sample.from_row(row),
    "calibrate": lambda row, _: graphnet_datasets.calibrate(
        Sample.from_row(row), memory_limit_bytes=LIMIT_BYTES
    ),
    "make_inputs": lambda row, _: graphnet_datasets.make_inputs(
        Sample.from_row(row), memory_limit_bytes=LIMIT_BYTES
    ),
    "materialize": lambda row, _: graphnet_datasets.materialize(
        Sample.from_row(row), memory_limit_bytes=LIMIT_BYTES
    ),
    "push_samples": lambda row, _: graphnet_datasets.push_samples(
        [row], "nobody/nothing", skip_validation="a test"
    ),
    "run": lambda row, folder: graphnet_datasets.run(
        [row], compiler="no such compiler", out=folder / "runs"
    ),
    "translate": lambda row, _: graphnet_datasets.translate(Sample.from_row(row)),
    "validate": lambda row, _: graphnet_datasets.validate(
        Sample.from_row(row), ["statically_analysable", "serializable"]
    ),
    "write_directory": lambda row, folder: graphnet_datasets.write_directory(
        Sample.from_row(row), folder / "written"
    ),
    "write_table": lambda row, folder: graphnet_datasets.write_table(
        [row], folder / "table.parquet"
    ),
}
"""Functions of a row of a graph."""

ON_RECORDS: dict[str, Callable[[Any, Path], Any]] = {
    "costs": lambda rows, _: graphnet_datasets.costs(rows),
    "error_aware_speedup_score": lambda rows, _: graphnet_datasets.error_aware_speedup_score(rows),
    "push_runs": lambda rows, _: graphnet_datasets.push_runs(rows, "nobody/nothing"),
    "speedup_score": lambda rows, _: graphnet_datasets.speedup_score(rows),
    "to_metric_inputs": lambda rows, _: graphnet_datasets.to_metric_inputs(rows),
}
"""Functions of several run records."""

ON_FOLDERS: dict[str, Callable[[Any, Path], Any]] = {
    "export_dataset": lambda place, folder: graphnet_datasets.export_dataset(
        folder / "exported", place / "dataset"
    ),
    "import_log": lambda place, _: graphnet_datasets.import_log(place / "log.txt"),
    "load_dataset": lambda place, _: graphnet_datasets.load_dataset(place / "dataset"),
    "load_sample": lambda place, _: graphnet_datasets.load_sample("a/b", place / "dataset"),
    "read_directory": lambda place, _: graphnet_datasets.read_directory(place / "sample"),
}
"""Functions of a folder."""

WITHOUT_DATA = {
    "__version__": "a string",
    "check": "runs a candidate of the caller, and passes the row to `run`",
    "judge": "runs a solution of the caller on rows that it passes to `run`",
    "convert": "converts each row in a confined worker, whose errors are outcomes",
    "disable_progress_bars": "takes no data",
    "enable_progress_bars": "takes no data",
    "extract": "runs a model of the caller; see below",
    "extract_export": "runs a model of the caller; see below",
    "metric_path": "takes the name of a score",
    "register_compiler": "takes a class of the caller",
    "set_verbosity": "takes a level",
    "without_weights": "takes no data",
}


def test_every_public_name_is_covered() -> None:
    covered = {*ON_ROWS, *ON_RECORDS, *ON_FOLDERS, *WITHOUT_DATA}
    assert covered == {*graphnet_datasets.__all__}


@pytest.mark.parametrize(
    "name", sorted({*ON_ROWS, *ON_RECORDS, *ON_FOLDERS, "extract", "extract_export"} - {"Sample"})
)
def test_functions_of_data_have_the_boundary(name: str) -> None:
    function = getattr(graphnet_datasets, name)
    assert inspect.unwrap(function) is not function
    assert function.__code__.co_filename.endswith("errors.py")


def chance_of(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - no secret


def only_ours(function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    with contextlib.suppress(GraphNetError):
        function(*arguments, **options)


@pytest.fixture(scope="module")
def offline() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        yield


FEW = settings(
    max_examples=25, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize("name", ON_ROWS)
@FEW
@given(seed=st.integers(0, 2**32))
def test_mutated_rows(
    name: str, seed: int, rows: Any, mutations: Any, offline: None, tmp_path_factory: Any
) -> None:
    del offline
    row = mutations.mutate_row(rows[seed % len(rows)], chance_of(seed), rows)
    only_ours(ON_ROWS[name], row, tmp_path_factory.mktemp("rows"))


@pytest.mark.parametrize("name", ON_RECORDS)
@FEW
@given(seed=st.integers(0, 2**32))
def test_mutated_records(
    name: str, seed: int, records: Any, mutations: Any, offline: None, tmp_path_factory: Any
) -> None:
    del offline
    chance = chance_of(seed)
    changed = [mutations.mutate_row(record, chance, records) for record in records[:4]]
    only_ours(ON_RECORDS[name], changed, tmp_path_factory.mktemp("records"))


@pytest.mark.torch
@pytest.mark.parametrize("name", ON_FOLDERS)
@FEW
@given(seed=st.integers(0, 2**32))
def test_mutated_folders(name: str, seed: int, mutations: Any, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("folders")
    place = folder / "place"
    graphnet_datasets.write_table([chain("a/b", 2)], place / "dataset" / "cv" / "train-0.parquet")
    graphnet_datasets.write_directory(chain("a/b", 2), place / "sample")
    lines = ["log [Processing] samples/a/b", "log [Config] compiler: inductor",
             "log [Performance][eager]: {\"e2e\": {\"mean\": 12.5}}"]  # fmt: skip
    (place / "log.txt").write_text("\n".join(lines))
    mutations.mutate_folder(place, chance_of(seed))
    only_ours(ON_FOLDERS[name], place, folder)


@pytest.mark.parametrize("odd", [None, 3, "", b"x", [None], [[]], {"id": 1}, object()])
def test_odd_arguments_raise_our_errors(odd: Any, tmp_path: Path, offline: None) -> None:
    del offline
    for functions in (ON_ROWS, ON_RECORDS):
        for function in functions.values():
            only_ours(function, odd, tmp_path)


ODD_JSON = ("[" * 100_000, "9" * 5000, "NaN", '{"a": 1e999}', '{"a": NaN}', "null", "[]", '"a"',
            "{", '{"a": {"b": [[]]}}', '{"timing": 3}', "\ud800")  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=text[:12], marks=pytest.mark.slow if place % 4 else ())
        for place, text in enumerate(ODD_JSON)
    ],
)
def test_odd_json_in_records_raises_our_errors(
    text: str, records: Any, tmp_path: Path, offline: None
) -> None:
    del offline
    columns = ("settings", "environment", "compiler_options", "provenance", "metadata")
    for column in columns:
        changed = [{**record, column: text} for record in records[:3] if column in record]
        for name, function in ON_RECORDS.items():
            only_ours(function, changed, tmp_path / name)
        only_ours(write_page, {"a": changed}, tmp_path / "page.html")
        only_ours(write_site, {"a": changed}, tmp_path / "site", dataset=None)


@pytest.mark.torch
def test_exceptions_of_a_model_pass_a_capture() -> None:
    import torch

    class OwnError(Exception):
        pass

    class Failing(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise OwnError(f"I take no tensors of {x.numel()} elements.")

    with pytest.raises(OwnError, match="I take no tensors"):
        graphnet_datasets.extract(name="a/b")(Failing())(torch.ones(2))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        graphnet_datasets.extract(name="a/b")(torch.nn.Linear(3, 4))(torch.ones(2, 5))


@pytest.mark.torch
def test_other_exceptions_of_a_capture_are_ours(tmp_path: Path) -> None:
    import torch

    for arguments in ({"name": 3}, {"name": "a/b", "out": 3}):
        with pytest.raises(GraphNetError):
            graphnet_datasets.extract(**arguments)
    with pytest.raises(GraphNetError):
        graphnet_datasets.extract_export(None, 3, name="a/b", out=tmp_path / "a.parquet")
    with pytest.raises(CaptureError):
        graphnet_datasets.extract(name="a/b")(3)
    module = graphnet_datasets.extract(name="a/b")(torch.nn.ReLU())
    module(torch.ones(2))
    assert len(module.samples) == 1


@pytest.mark.torch
@pytest.mark.slow
@FEW
@given(seed=st.integers(0, 2**32))
def test_runs_and_validations_of_mutated_rows(
    seed: int, rows: Any, mutations: Any, kept_servers: None
) -> None:
    del kept_servers
    row = mutations.mutate_row(rows[seed % len(rows)], chance_of(seed), rows)
    only_ours(lambda: graphnet_datasets.validate(Sample.from_row(row), memory_limit_bytes=2**30))
    only_ours(lambda: graphnet_datasets.run([row], compiler="eager", memory_limit_bytes=2**30))


@pytest.fixture(scope="module")
def kept_servers() -> Iterator[None]:
    from graphnet_datasets.isolation import keep_servers

    with keep_servers():
        yield


def test_running_out_of_memory_is_our_error() -> None:
    @graphnet_datasets.errors.raises_only(RunError)
    def take_too_much() -> bytes:
        return bytes(2**62)

    with pytest.raises(MemoryLimitError):
        take_too_much()
