"""Pushing samples and run records to a Hub that speaks the real protocol."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from huggingface_hub import CommitOperationAdd, HfApi

from graphnet_datasets import Sample, load_dataset, push_runs, push_samples
from graphnet_datasets.analysis.splits import split_of
from graphnet_datasets.errors import (
    DatasetNotFoundError,
    FormatVersionError,
    PushError,
    SchemaError,
)
from graphnet_datasets.hub import Pushed, Skipped
from graphnet_datasets.sample import Input, Value
from graphnet_datasets.schema import RUNS_SCHEMA, empty_run
from tests.exact import exact
from tests.hub_server import Hub
from tests.tables import chain, rows

REPO = "org/graphs"


def chains(task: str, sizes: Sequence[int]) -> list[Sample]:
    return [chain(f"{task}/chain-{size}", size, task) for size in sizes]


def files(hub: Hub, branch: str = "v1", repo: str = REPO) -> dict[str, bytes]:
    repository = hub.state.repositories[repo]
    commit = repository.resolve(branch)
    assert commit is not None
    return {path: blob.content for path, blob in repository.commits[commit].items()}


def shards(hub: Hub, branch: str = "v1") -> list[str]:
    return sorted(path for path in files(hub, branch) if path.endswith(".parquet"))


def card(hub: Hub) -> tuple[dict[str, object], str]:
    _, data, body = files(hub)["README.md"].decode().split("---\n", 2)
    return yaml.safe_load(data), body


def run_record(run_id: str, **columns: object) -> dict[str, object]:
    return {**empty_run(), "run_id": run_id, "compiler": "inductor", "status": "ok", **columns}


def test_what_is_pushed_is_read_back_exactly(hub: Hub) -> None:
    samples = [*chains("cv", range(3, 0, -1)), *chains("nlp", [5])]
    pushed = push_samples(samples, REPO, split="train")
    assert (pushed.num_added, pushed.skipped, pushed.pull_request_url) == (4, (), None)
    head = hub.state.repositories[REPO].branches["v1"]
    assert pushed.commit_url == f"{hub.endpoint}/datasets/{REPO}/commit/{head}"
    loaded = [Sample.from_row(row) for row in load_dataset(REPO, "cv")]
    assert [exact(each) for each in loaded] == [exact(each) for each in reversed(samples[:3])]
    streamed = load_dataset(REPO, filters=[("num_ops", ">", 2)], streaming=True)
    assert [row["id"] for row in streamed] == ["cv/chain-3", "nlp/chain-5"]
    plain = datasets.load_dataset(REPO, "nlp", revision="v1", split="train")
    assert plain["num_ops"][:] == [5]
    assert datasets.get_dataset_config_names(REPO, revision="v1") == ["cv", "nlp", "all"]


def test_config_and_split_follow_from_task_and_family(hub: Hub) -> None:
    samples = [*chains("audio", [1]), *chains("cv", [1])]
    push_samples(samples, REPO)
    # Chains of any length are one family; a graph is known by what it computes, not by its task.
    [path] = shards(hub)
    row = pq.read_table(pa.BufferReader(files(hub)[path])).to_pylist()[0]
    assert path.startswith(f"audio/{split_of(row['family'])}-")
    push_samples(chains("cv", [2]), REPO, "mine", "held_out")
    assert any(path.startswith("mine/held_out-") for path in shards(hub))


def test_a_push_adds_one_shard_per_config_and_split_in_one_commit(hub: Hub) -> None:
    push_samples(chains("cv", range(1, 4)), REPO, split="train")
    before, history = files(hub), len(hub.state.repositories[REPO].history)
    push_samples([*chains("cv", range(3, 9)), *chains("nlp", [9])], REPO, split="train")
    after = files(hub)
    assert len(hub.state.repositories[REPO].history) == history + 1
    assert sorted(path.partition("-")[0] for path in after.keys() - before) == [
        "cv/train",
        "nlp/train",
    ]
    changed = {path for path in before if before[path] != after[path]}
    assert changed == {"README.md", "graphs.svg"}
    assert sorted(load_dataset(REPO)["num_ops"]) == list(range(1, 10))


def test_what_is_there_is_left_out_with_the_reason(hub: Hub) -> None:
    push_samples(chains("cv", [1, 2]), REPO, split="train")
    again = [chain("other/name", 1), chain("cv/chain-2", 2, "cv"), *chains("cv", [3, 3])]
    pushed = push_samples(again, REPO, split="test")
    assert pushed.num_added == 1
    assert set(pushed.skipped) == {
        Skipped("cv/chain-3", "It stands twice in this push."),
        Skipped("other/name", f"`{REPO}` has it already as `cv/chain-1`."),
        Skipped("cv/chain-2", f"`{REPO}` has it already."),
    }
    before = files(hub)
    assert push_samples(chains("cv", [1, 2]), REPO) == Pushed(
        0,
        (
            Skipped("cv/chain-1", f"`{REPO}` has it already."),
            Skipped("cv/chain-2", f"`{REPO}` has it already."),
        ),
    )
    assert files(hub) == before


@pytest.mark.usefixtures("hub")
def test_rows_are_checked_and_their_hashes_computed_again() -> None:
    good, forged, broken = rows("cv", range(1, 4))
    forged["signature_hash"] = forged["family"] = "0" * 32
    broken["ops"][0]["operands"] = [99]
    pushed = push_samples([good, forged, broken], REPO, split="train")
    assert pushed.num_added == 2
    [skipped] = pushed.skipped
    assert skipped.id == "cv/chain-3"
    assert "99" in skipped.reason
    assert "0" * 32 not in load_dataset(REPO)["signature_hash"]
    with pytest.raises(SchemaError) as caught:
        push_samples([3], REPO)  # type: ignore[list-item]
    assert str(caught.value) == (
        "A sample or a row of one can be pushed, not `int`. Give an iterable of them."
    )


# The card


def test_the_card_names_configs_columns_and_figures(hub: Hub) -> None:
    push_samples(chains("cv", [1, 2, 40]), REPO, split="train")
    push_samples(chains("nlp", [7]), REPO, split="test")
    data, body = card(hub)
    configs = {config["config_name"]: config for config in data["configs"]}
    assert configs["all"]["default"] is True
    assert configs["all"]["data_files"] == [
        {"split": "train", "path": ["cv/train-*.parquet"]},
        {"split": "test", "path": ["nlp/test-*.parquet"]},
    ]
    information = data["dataset_info"]
    assert [each["config_name"] for each in information] == ["cv", "nlp", "all"]
    assert all(set(each) == {"config_name", "features"} for each in information)
    assert "4 graphs of 1 families." in body
    assert "| cv | train | 3 | 1 | torch | 1 to 40 (2) | 0 to 0 (0) |" in body
    assert "| test | not stated | 4 | 1 |" in body
    assert files(hub)["graphs.svg"].startswith(b"<svg")


def test_what_the_owner_wrote_stays(hub: Hub) -> None:
    push_samples(chains("cv", [1]), REPO, split="train")
    text = files(hub)["README.md"].decode()
    text = text.replace("---\n", "---\nlicense: apache-2.0\n", 1).replace("# graphs", "# Ours")
    HfApi().upload_file(
        path_or_fileobj=(text + "\nCite us.\n").encode(),
        path_in_repo="README.md",
        repo_id=REPO,
        repo_type="dataset",
        revision="v1",
    )
    push_samples(chains("cv", [2]), REPO, split="train")
    data, body = card(hub)
    assert data["license"] == "apache-2.0"
    assert body.startswith("# Ours")
    assert body.endswith("Cite us.\n")
    assert body.count("graphs of 1 families.") == 1
    assert "2 graphs of 1 families." in body


# Many writers


def test_eight_threads_lose_nothing_and_duplicate_nothing(hub: Hub) -> None:
    batches = [chains("cv", range(3 * index + 1, 3 * index + 6)) for index in range(8)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda batch: push_samples(batch, REPO, split="train"), batches))
    sizes = load_dataset(REPO, "cv")["num_ops"][:]
    assert sorted(sizes) == list(range(1, 27))
    assert sum(pushed.num_added for pushed in results) == 26
    assert sum(len(pushed.skipped) for pushed in results) == 8 * 5 - 26
    assert len(shards(hub)) == sum(pushed.num_added > 0 for pushed in results)
    _, body = card(hub)
    assert "26 graphs of 1 families." in body


@pytest.mark.slow
@pytest.mark.usefixtures("hub")
def test_processes_lose_nothing_and_duplicate_nothing() -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.hub.pushing", REPO, str(first), str(first + 5)],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            text=True,
        )
        for first in range(1, 25, 3)
    ]
    added = [int(writer.communicate()[0]) for writer in writers]
    assert sum(added) == 26
    assert sorted(load_dataset(REPO, "cv")["num_ops"]) == list(range(1, 27))


def test_a_conflict_is_answered_by_looking_again(hub: Hub) -> None:
    push_samples(chains("cv", [1]), REPO, split="train")
    hub.state.commit_failures += [412, 409]
    assert push_samples(chains("cv", [2]), REPO, split="train").num_added == 1
    assert hub.state.commit_failures == []
    assert sorted(load_dataset(REPO)["num_ops"]) == [1, 2]


def test_a_branch_that_never_rests_is_given_up(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphnet_datasets.hub.append.MAX_ATTEMPTS", 2)
    push_samples(chains("cv", [1]), REPO)
    before = files(hub)
    hub.state.commit_failures += [412, 412]
    with pytest.raises(PushError) as caught:
        push_samples(chains("cv", [2]), REPO)
    assert str(caught.value) == (
        f"`{REPO}` got other commits during each of 2 attempts. Push again when fewer writers are "
        "at work."
    )
    assert files(hub) == before


# Failures


@pytest.mark.parametrize(("of", "status"), [("put", 403), ("commit", 400), ("commit", 403)])
def test_an_interrupted_push_leaves_the_repository_as_it_was(
    hub: Hub, of: str, status: int
) -> None:
    push_samples(chains("cv", [1]), REPO, split="train")
    before, history = files(hub), list(hub.state.repositories[REPO].history)
    getattr(hub.state, f"{of}_failures").append(status)
    with pytest.raises(PushError, match=rf"^The push to `{REPO}` failed: .*\. (Push|Log in)"):
        push_samples(chains("cv", [2]), REPO, split="train")
    assert files(hub) == before
    assert hub.state.repositories[REPO].history == history
    assert push_samples(chains("cv", [2]), REPO, split="train").num_added == 1
    assert sorted(load_dataset(REPO)["num_ops"]) == [1, 2]


@pytest.mark.usefixtures("hub")
def test_a_token_that_may_not_write_is_told_to_log_in() -> None:
    with pytest.raises(PushError, match=r"Log in with a token that may write there"):
        push_samples(chains("cv", [1]), REPO, token="hf_wrong")  # noqa: S106


@pytest.mark.parametrize("name", ["graphs", "a/b/c", "./graphs", ""])
def test_a_name_that_is_no_repository_is_refused(name: str) -> None:
    with pytest.raises(SchemaError) as caught:
        push_samples([], name)
    assert str(caught.value) == f"`{name}` is not a repository on the Hub. Write `org/name`."


@pytest.mark.parametrize("config", ["runs", "all", "a/b", "a-b", "..", ""])
def test_a_config_that_cannot_be_a_folder_is_refused(config: str) -> None:
    with pytest.raises(SchemaError) as caught:
        push_samples([], REPO, config)
    assert str(caught.value) == (
        f"`{config}` cannot be a config of graphs. Take letters, digits and underscores, and none "
        "of all, runs."
    )


# Versions and revisions


def test_the_branch_of_the_format_version_is_made(hub: Hub) -> None:
    push_samples(chains("cv", [1]), REPO)
    repository = hub.state.repositories[REPO]
    assert set(repository.branches) == {"main", "v1"}
    assert files(hub, "main") == {}


@pytest.mark.parametrize(
    ("version", "advice"),
    [
        (
            2,
            "Install the release that writes version 2 (`pip install --upgrade "
            "graphnet-datasets`), or push to another repository.",
        ),
        (
            0,
            f"To convert it, run `graphnet export samples --dataset {REPO} --format graphnet` with "
            "the release that reads version 0, then `graphnet push samples org/new-name` with this "
            "one.",
        ),
    ],
)
@pytest.mark.parametrize("known_by", ["branch", "table"])
def test_another_format_version_is_refused_with_the_way_out(
    hub: Hub, version: int, advice: str, known_by: str
) -> None:
    api = HfApi()
    api.create_repo(REPO, repo_type="dataset")
    if known_by == "branch":
        api.create_branch(REPO, branch=f"v{version}", repo_type="dataset")
    else:
        other = [{**row, "schema_version": version} for row in rows("cv", range(2))]
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(other), sink)
        api.create_commit(
            REPO,
            [CommitOperationAdd("cv/train-0000.parquet", sink.getvalue().to_pybytes())],
            commit_message="Add",
            repo_type="dataset",
        )
    with pytest.raises(FormatVersionError) as caught:
        push_samples(chains("cv", [1]), REPO)
    assert str(caught.value) == (
        f"`{REPO}` holds format version {version}; this library writes 1. {advice}"
    )
    assert "v1" not in hub.state.repositories[REPO].branches


def test_tables_of_something_else_are_not_mixed_with_ours(hub: Hub) -> None:
    api = HfApi()
    api.create_repo(REPO, repo_type="dataset")
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": ["a"]}), sink)
    operation = CommitOperationAdd("data/train-0.parquet", sink.getvalue().to_pybytes())
    api.create_commit(REPO, [operation], commit_message="Add", repo_type="dataset")
    with pytest.raises(SchemaError, match=r"^`data/train-0.parquet` in `org/graphs` has no column"):
        push_samples(chains("cv", [1]), REPO)
    assert set(files(hub, "main")) == {"data/train-0.parquet"}


def test_a_revision_that_is_not_there_is_not_made(hub: Hub) -> None:
    push_samples(chains("cv", [1]), REPO)
    with pytest.raises(DatasetNotFoundError, match=r"at the revision `v1-more` on the Hub"):
        push_samples(chains("cv", [2]), REPO, revision="v1-more")
    HfApi().create_branch(REPO, branch="v1-more", revision="v1", repo_type="dataset")
    push_samples(chains("cv", [2]), REPO, revision="v1-more")
    assert (len(shards(hub)), len(shards(hub, "v1-more"))) == (1, 2)


# Pull requests


def test_a_contribution_is_a_pull_request(hub: Hub) -> None:
    push_samples(chains("cv", [1]), REPO, split="train")
    before = files(hub)
    pushed = push_samples(chains("cv", [1, 2]), REPO, split="train", create_pr=True)
    assert (pushed.num_added, len(pushed.skipped)) == (1, 1)
    assert pushed.pull_request_url == f"{hub.endpoint}/datasets/{REPO}/discussions/1"
    assert files(hub) == before
    proposed = files(hub, "refs/pr/1")
    # The card takes the shard in already; two proposals that change it could not both be merged.
    assert {path for path in proposed if proposed[path] != before.get(path)} == (
        proposed.keys() - before
    )
    push_samples(chains("nlp", [3]), REPO, split="train", create_pr=True)
    assert files(hub, "refs/pr/2")["README.md"] != before["README.md"]


def test_a_contribution_needs_a_repository(hub: Hub) -> None:
    with pytest.raises(DatasetNotFoundError, match=r"^There is no dataset `org/graphs` on the Hub"):
        push_samples(chains("cv", [1]), REPO, create_pr=True)
    assert REPO not in hub.state.repositories
    HfApi().create_repo(REPO, repo_type="dataset")
    with pytest.raises(DatasetNotFoundError) as caught:
        push_samples(chains("cv", [1]), REPO, create_pr=True)
    assert str(caught.value) == (
        f"`{REPO}` has no branch `v1` to open a pull request against. Its owner makes one with the "
        "first `graphnet push`."
    )


# Run records


def test_runs_are_pushed_by_their_id_beside_the_graphs(hub: Hub) -> None:
    push_samples(chains("cv", [1]), REPO, split="train")
    records = [run_record("a"), run_record("b", status="compile_failed"), run_record("a")]
    table = pa.Table.from_pylist(records, RUNS_SCHEMA)
    pushed = push_runs(table, REPO)
    assert pushed.num_added == 2
    assert pushed.skipped == (Skipped("a", "It stands twice in this push."),)
    pushed = push_runs(datasets.Dataset(table), REPO)
    assert (pushed.num_added, pushed.commit_url) == (0, None)
    assert push_runs([run_record("c")], REPO).num_added == 1
    assert sorted(load_dataset(REPO, "runs")["run_id"]) == ["a", "b", "c"]
    assert load_dataset(REPO)["num_ops"][:] == [1]
    data, body = card(hub)
    assert [each["config_name"] for each in data["configs"]] == ["cv", "runs", "all"]
    assert "3 records of timed runs." in body
    assert "| inductor | not stated | ok | 2 |" in body


def test_runs_alone_can_begin_a_repository(hub: Hub) -> None:
    push_runs([run_record("a")], REPO)
    assert load_dataset(REPO)["run_id"][:] == ["a"]
    push_samples(chains("cv", [1]), REPO, split="train")
    assert load_dataset(REPO)["num_ops"][:] == [1]
    assert len(shards(hub)) == 2


def test_run_records_of_another_kind_are_refused() -> None:
    with pytest.raises(SchemaError, match=r"^Run records have other columns than the `runs` table"):
        push_runs([{"run_id": "a"}], REPO)
    with pytest.raises(FormatVersionError) as caught:
        push_runs([run_record("a", schema_version=2)], REPO)
    assert str(caught.value) == (
        "The run records are of format version 2; this library writes 1. Push them with the "
        "release of `graphnet-datasets` that made them."
    )


# What is fetched


def large(task: str, num_ops: int, seed: int) -> Sample:
    """Return a chain that also carries elements, which do not compress."""
    data = random.Random(seed).randbytes(20_000)  # noqa: S311
    sample = chain(f"{task}/large-{num_ops}-{seed}", num_ops, task)
    stored = Input("constant", Value("uint8", (20_000,)), "table", data=data)
    return Sample(
        **{
            **{name: getattr(sample, name) for name in sample.__dataclass_fields__},
            "inputs": (*sample.inputs, stored),
            "ops": tuple(
                type(op)(op.target, (type(op.args[0])(0 if k == 0 else k + 1),), results=op.results)
                for k, op in enumerate(sample.ops)
            ),
            "outputs": (type(sample.outputs[0])(num_ops + 1),),
        }
    )


def test_only_what_is_needed_of_the_shards_is_fetched(hub: Hub) -> None:
    push_samples([large("cv", size, size) for size in range(1, 101)], REPO, split="train")
    push_samples([large("cv", size, size) for size in range(301, 401)], REPO, split="train")
    push_samples([large("nlp", size, size) for size in range(501, 541)], REPO, split="train")
    sizes = {
        path: len(content) for path, content in files(hub).items() if path.endswith(".parquet")
    }
    assert min(sizes.values()) > 800_000
    sha_of = {
        blob.sha256: path
        for path, blob in hub.state.repositories[REPO]
        .commits[hub.state.repositories[REPO].branches["v1"]]
        .items()
    }

    def fetched() -> dict[str, int]:
        served = {sha_of[sha]: n for sha, n in hub.state.bytes_served.items() if sha in sha_of}
        hub.state.bytes_served.clear()
        return {path: served.get(path, 0) for path in sizes}

    fetched()
    assert push_samples([large("cv", 5, 5)], REPO).num_added == 0
    for path, count in fetched().items():
        assert 0 < count < 250_000, path
    # A filter on task and size reads the one shard whose graphs can match, and of the others of
    # that task at most the end, where Parquet keeps the least and the greatest value.
    rows = load_dataset(REPO, "cv", filters=[("num_ops", ">", 390)], streaming=True)
    assert [row["num_ops"] for row in rows] == list(range(391, 401))
    for path, count in fetched().items():
        least = pq.read_table(pa.BufferReader(files(hub)[path]), columns=["num_ops"])[0][0].as_py()
        if path.startswith("nlp/"):
            assert count == 0
        elif least == 1:
            assert count <= 3 * 65_536
        else:
            assert count > 1_000_000
