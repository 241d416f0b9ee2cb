"""Datasets out of datasets: everything accounted for, whatever happens on the way."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets import Sample, load_dataset
from graphnet_datasets.analysis.splits import split_of
from graphnet_datasets.errors import DatasetExistsError, DatasetNotFoundError, RunError
from graphnet_datasets.isolation import Limits
from graphnet_datasets.sample import Input, Op, Statistics, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.storage.filters import Filters
from graphnet_datasets.storage.selection import select_rows
from graphnet_datasets.storage.table import write_table
from graphnet_datasets.storage.transforming import read_report, transform_dataset
from graphnet_datasets.transforms.registry import Step
from tests.tables import chain
from tests.waiting import wait_until

GRAPHNET = Path(sys.executable).with_name("graphnet")
HALF = Step("cast", {"dtype": "float16"})
SOLE_OPS = Step("parts", {"config": "sole_op"})
pytestmark = pytest.mark.torch


def rows_of(dataset: Path, config: str = "all") -> dict[str, list[dict[str, Any]]]:
    splits: Any = load_dataset(dataset, config, streaming=True)
    return {name: list(split) for name, split in splits.items()}


def overflowing(name: str) -> Sample:
    data = Input("input", Value("float32", (4,)), statistics=Statistics(30.0, 0.1))
    ops = (Op("operator.mul", (Ref(0), 1.0)), Op("torch.exp", (Ref(1),)))
    return Sample(name, "torch", "other", (data,), ops, Ref(2))


def row(sample: Sample, family: str) -> dict[str, Any]:
    return {**sample.to_row(), "family": family}


def family_in(split: str) -> str:
    return next(str(number) for number in range(1000) if split_of(str(number)) == split)


def test_graphs_are_cast_and_refusals_are_reported(tmp_path: Path) -> None:
    good, bad = chain("a/good", 3, "cv"), overflowing("a/bad")
    seen: list[tuple[int, int]] = []
    report = transform_dataset(
        [row(good, family_in("test")), row(bad, family_in("train"))],
        [HALF],
        tmp_path / "mine",
        jobs=1,
        on_progress=lambda *counts: seen.append(counts),
    )
    assert (report.num_rows, [each.id for each in report.refused]) == (1, ["a/bad"])
    assert seen[0] == (0, 2)
    assert seen[-1] == (2, 2)
    ((split, (made,)),) = rows_of(tmp_path / "mine", "cv").items()
    assert (split, made["id"], made["dtype"]) == ("test", "a/good/float16", "float16")
    assert made["family"] == family_in("test"), "that of the graph it was made of"
    assert made["parent_id"] == "a/good"
    (refusal,) = report.refused[0].refused
    assert "returns non-finite elements" in refusal.message
    assert read_report(tmp_path / "mine" / "transform-report.jsonl") == list(report.outcomes)
    assert "1 refused in 1 graph: " in report.summary()
    assert [path.name for path in tmp_path.iterdir()] == ["mine"], "nothing else is left"


@pytest.mark.slow
def test_training_steps_are_chosen_by_their_kind(tmp_path: Path) -> None:
    """A worker runs graphs without gradients, and has to ask for them where they are wanted."""
    step = Step("backward", {"kind": "joint"})
    report = transform_dataset(
        [row(chain("a/one", 2, "cv"), family_in("train"))], [step], tmp_path / "mine", jobs=1
    )
    assert report.refused == []
    (found,) = select_rows(tmp_path / "mine", Filters(kind=("joint",)))
    assert (found["id"], found["parent_id"], found["task"]) == ("a/one/joint", "a/one", "cv")
    assert select_rows(tmp_path / "mine", Filters(kind=("graph",))) == []


@pytest.mark.slow
def test_steps_follow_one_another_and_equal_parts_are_merged(tmp_path: Path) -> None:
    names = {"a/one": 2, "b/two": 3, "c/three": 4}
    families = dict(zip(names, map(family_in, ("test", "train", "validation")), strict=True))
    rows = [row(chain(name, size), families[name]) for name, size in names.items()]
    report = transform_dataset(rows, [SOLE_OPS, HALF], tmp_path / "mine", jobs=2)
    assert (report.num_made, report.num_rows) == (3, 1)
    ((split, (only,)),) = rows_of(tmp_path / "mine", "sole_op").items()
    assert split == "train", "what is in train as well is no surprise in a test"
    assert only["id"] == "b/two/float16/ops_0", "it is cut out of a graph of its split"
    assert (only["num_occurrences"], only["num_families"]) == (9, 3)
    assert only["splits"] == ["train", "validation", "test"]
    assert only["tasks"] == ["other"]
    assert (only["method"], only["has_statistics"], only["dtype"]) == ("sole_op", True, "float16")
    assert only["parent_id"] == "b/two/float16"
    assert Sample.from_row(only).num_ops == 1


@pytest.mark.slow
def test_parts_of_two_methods_are_distinguished_and_do_not_leak(tmp_path: Path) -> None:
    """The method that looks at few graphs finds in `test` what is in `train` as well."""
    small = chain("a/small", 3)
    ops = [dataclasses.replace(op, args=(Ref(at + (at > 0)),)) for at, op in enumerate(small.ops)]
    large = dataclasses.replace(
        small,
        id="b/large",
        inputs=(*small.inputs, Input("input", Value("float32", (5,)))),
        ops=(*ops, Op("torch.relu", (Ref(1),), results=(Value("float32", (5,)),))),
        outputs=(Ref(4), Ref(5)),
    )
    again = row(dataclasses.replace(small, id="c/again"), family_in("test"))
    steps = [
        Step("parts", {"config": "fusible", "method": "rules"}),
        Step("parts", {"config": "fusible", "method": "inductor", "max_ops": 3}),
    ]
    report = transform_dataset(
        [row(small, family_in("test")), row(large, family_in("train")), again],
        steps,
        tmp_path / "mine",
        jobs=1,
    )
    reasons = [each.reason for outcome in report.outcomes for each in outcome.refused]
    assert reasons == ["it has more operators than the limit of the method `inductor`"]
    assert not report.refused, "the other method made something of it"
    ((split, found),) = rows_of(tmp_path / "mine", "fusible").items()
    assert split == "train"
    by_method = {each["method"]: each for each in found}
    counts = {name: each["num_occurrences"] for name, each in by_method.items()}
    assert counts == {"rules": 3, "inductor": 2}
    assert len({each["subgraph_hash"] for each in found}) == 1
    assert [each["splits"] for each in found] == [["train", "test"]] * 2
    assert sorted(each["id"] for each in found) == ["b/large/ops_0-2", "b/large/ops_0-2-2"]
    assert {each["family"] for each in found} == {family_in("train")}
    assert [each["num_families"] for each in found] == [2, 2]
    (only,) = select_rows(tmp_path / "mine", Filters(method=("inductor",)))
    assert only["id"] == by_method["inductor"]["id"]
    with pytest.raises(RunError, match=r"There is no method `inducto`\. Did you mean"):
        Filters(method=("inducto",))


@pytest.mark.slow
def test_equal_sources_give_equal_files(tmp_path: Path) -> None:
    rows = [row(chain(f"a/{size}", size), str(size)) for size in (4, 2, 3)]
    rows.append(row(overflowing("a/other"), "x"))
    for name, jobs in (("one", 1), ("two", 2)):
        transform_dataset(rows, [SOLE_OPS], tmp_path / name, jobs=jobs)
    contents = [
        {path.relative_to(place): path.read_bytes() for path in sorted(place.rglob("*.*"))}
        for place in (tmp_path / "one", tmp_path / "two")
    ]
    assert contents[0] == contents[1]


def test_a_graph_that_may_not_run_is_cut_and_not_cast(tmp_path: Path) -> None:
    samples = [overflowing("a/two")]
    cut = transform_dataset(samples, [SOLE_OPS], tmp_path / "cut", jobs=1, max_input_bytes=1)
    assert (cut.num_rows, cut.outcomes[0].has_run) == (2, False)
    rows = rows_of(tmp_path / "cut", "sole_op").popitem()[1]
    assert [each["has_statistics"] for each in rows] == [True, False]
    assert "1 without a run" in cut.summary()
    report = transform_dataset(samples, [HALF], tmp_path / "half", jobs=1, max_input_bytes=1)
    assert report.out is None
    assert not (tmp_path / "half").exists()
    assert report.report_path.name == "half.transform-report.jsonl"
    assert report.refused[0].refused[0].reason == "it is too large to be run"


def test_a_graph_that_is_lost_in_its_run_is_cut_without(tmp_path: Path) -> None:
    data = Input("input", Value("float32", (2,)), statistics=Statistics(0.0, 1.0))
    large = Op("torch.zeros", (200_000_000,), ())
    sample = Sample(
        "a/large", "torch", "other", (data,), (large, Op("torch.exp", (Ref(0),))), Ref(2)
    )
    limits = Limits(memory_bytes=200 * 2**20)
    report = transform_dataset([sample], [SOLE_OPS], tmp_path / "mine", jobs=1, limits=limits)
    assert report.num_rows == 1


def test_a_graph_beyond_the_limits_is_refused_and_the_others_are_not(tmp_path: Path) -> None:
    limits = Limits(phase_timeouts_s={"transform": 0.001})
    report = transform_dataset(
        [chain("a/chain", 3)], [HALF], tmp_path / "mine", jobs=1, limits=limits
    )
    assert report.refused[0].refused[0].reason == "its process ended: timeout in transform"


def test_existing_data_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("mine")
    with pytest.raises(DatasetExistsError, match=r"exists\. Choose another path, or delete it\."):
        transform_dataset([chain("a/chain", 3)], [HALF], tmp_path / "mine")


def test_the_same_call_again_does_nothing_and_another_is_refused(tmp_path: Path) -> None:
    samples = [chain("a/chain", 3), chain("b/chain", 4)]
    first = transform_dataset(samples, [HALF], tmp_path / "mine", jobs=1)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "mine").rglob("*")}
    again = transform_dataset(samples, [HALF], tmp_path / "mine", jobs=1)
    assert (again.outcomes, again.num_rows) == (first.outcomes, first.num_rows)
    assert again.num_resumed == 2
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "mine").rglob("*")} == before
    for what, step in (
        (samples[:1], HALF),
        ([samples[0], chain("b/chain", 5)], HALF),
        (samples, Step("cast", {"dtype": "bfloat16"})),
    ):
        with pytest.raises(DatasetExistsError, match="Choose another path"):
            transform_dataset(what, [step], tmp_path / "mine", jobs=1)


def test_nothing_to_transform_and_a_wrong_executor_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError, match=r"matches `--min-ops 9`\. Without"):
        transform_dataset([chain("a", 3)], [HALF], tmp_path / "mine", filters=Filters(min_ops=9))
    with pytest.raises(RunError, match="There is no executor `slurm`"):
        transform_dataset([chain("a", 3)], [HALF], tmp_path / "mine", executor="slurm")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.slow
def test_a_killed_transform_goes_on_where_it_was(tmp_path: Path) -> None:
    samples = [chain(f"a/{size}", size) for size in range(1, 12)]
    write_table(samples, tmp_path / "graphs.parquet")
    words = [str(tmp_path / "graphs.parquet"), "--parts", "sole_op", "--jobs", "1"]
    command = [GRAPHNET, "--quiet", "transform", *words, "--out", tmp_path / "mine"]
    parts = tmp_path / ".mine.transform" / "parts"
    first = subprocess.Popen(command)
    try:
        wait_until(lambda: len([*parts.glob("*.arrow")]) >= 2 or first.poll() is not None)
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
    assert not (tmp_path / "mine").exists()
    kept = len([*parts.glob("*.arrow")])
    assert 0 < kept < len(samples)
    (parts / "broken.arrow").write_bytes(b"half a file")
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert f"{kept} graphs were transformed by an earlier call" in done.stdout
    (only,) = rows_of(tmp_path / "mine", "sole_op").popitem()[1]
    assert only["num_occurrences"] == sum(range(1, 12))
    assert not parts.exists()


def test_a_transform_that_was_stopped_while_tidying_is_finished(tmp_path: Path) -> None:
    samples = [chain("a/one", 2)]
    done = transform_dataset(samples, [HALF], tmp_path / "mine", jobs=1)
    hidden = tmp_path / ".mine.transform"
    (hidden / "parts").mkdir(parents=True)
    (hidden / "finished").touch()
    again = transform_dataset(samples, [HALF], tmp_path / "mine", jobs=1)
    assert (again.num_resumed, again.outcomes) == (1, done.outcomes)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_other_steps_and_changed_rows_are_transformed_again(tmp_path: Path) -> None:
    rows = [row(chain("a/chain", 3), "a")]
    place = tmp_path / ".mine.transform" / "parts"
    report = transform_dataset(rows, [HALF], tmp_path / "first", jobs=1)
    assert report.num_resumed == 0
    place.mkdir(parents=True)
    (place / "x.arrow").write_bytes(b"")
    again = transform_dataset(rows, [HALF], tmp_path / "mine", jobs=1)
    assert (again.num_resumed, again.num_rows) == (0, 1)
    assert json.loads((tmp_path / "mine" / "transform-report.jsonl").read_text())["num_made"] == 1
