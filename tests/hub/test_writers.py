"""Many writers at once, and pushes that are interrupted."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from graphnet_datasets import load_dataset
from graphnet_datasets.errors import (
    PushError,
    SchemaError,
)
from graphnet_datasets.schema import CONFIGS
from tests.hub_server import Hub

from .pushes import REPO, card, chains, files, push, shards


def test_eight_threads_lose_nothing_and_duplicate_nothing(hub: Hub) -> None:
    batches = [chains("cv", range(3 * index + 1, 3 * index + 6)) for index in range(8)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda batch: push(batch, REPO, split="train"), batches))
    sizes = load_dataset(REPO, "cv", split="train")["num_ops"][:]
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
    assert sorted(load_dataset(REPO, "cv", split="train")["num_ops"]) == list(range(1, 27))


def test_a_conflict_is_answered_by_looking_again(hub: Hub) -> None:
    push(chains("cv", [1]), REPO, split="train")
    hub.state.commit_failures += [412, 409]
    assert push(chains("cv", [2]), REPO, split="train").num_added == 1
    assert hub.state.commit_failures == []
    assert sorted(load_dataset(REPO, split="train")["num_ops"]) == [1, 2]


def test_a_branch_that_never_rests_is_given_up(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphnet_datasets.hub.append.MAX_ATTEMPTS", 2)
    push(chains("cv", [1]), REPO)
    before = files(hub)
    hub.state.commit_failures += [412, 412]
    with pytest.raises(PushError) as caught:
        push(chains("cv", [2]), REPO)
    assert str(caught.value) == (
        f"`{REPO}` received other commits during each of 2 attempts. Push again when fewer "
        "writers are active."
    )
    assert files(hub) == before


@pytest.mark.parametrize(("of", "status"), [("put", 403), ("commit", 400), ("commit", 403)])
def test_an_interrupted_push_leaves_the_repository_as_it_was(
    hub: Hub, of: str, status: int
) -> None:
    push(chains("cv", [1]), REPO, split="train")
    before, history = files(hub), list(hub.state.repositories[REPO].history)
    getattr(hub.state, f"{of}_failures").append(status)
    with pytest.raises(PushError, match=rf"^The push to `{REPO}` failed: .*\. (Push|Log in)"):
        push(chains("cv", [2]), REPO, split="train")
    assert files(hub) == before
    assert hub.state.repositories[REPO].history == history
    assert push(chains("cv", [2]), REPO, split="train").num_added == 1
    assert sorted(load_dataset(REPO, split="train")["num_ops"]) == [1, 2]


@pytest.mark.usefixtures("hub")
def test_a_token_without_write_permission_gets_advice() -> None:
    with pytest.raises(PushError, match=r"Log in with a token with write access"):
        push(chains("cv", [1]), REPO, token="hf_wrong")  # noqa: S106


@pytest.mark.parametrize("name", ["graphs", "a/b/c", "./graphs", ""])
def test_a_name_that_is_no_repository_is_refused(name: str) -> None:
    with pytest.raises(SchemaError) as caught:
        push([], name)
    assert str(caught.value) == f"`{name}` is not a repository on the Hub. Use `org/name`."


@pytest.mark.parametrize("config", ["runs", "all", "excluded", "a/b", "a-b", "..", ""])
def test_a_config_that_cannot_be_a_folder_is_refused(config: str) -> None:
    with pytest.raises(SchemaError) as caught:
        push([], REPO, config)
    taken = ["all", *(name for name, each in CONFIGS.items() if not each.is_in_all)]
    assert str(caught.value) == (
        f"`{config}` cannot be a config of graphs. Use letters, digits and underscores, but none "
        f"of {', '.join(sorted(taken))}."
    )
