"""Compilers and samples of two frameworks in one run."""

from __future__ import annotations

import dataclasses
import re

import pytest

from graphnet_datasets.benchmark.matching import match_compilers
from graphnet_datasets.errors import DatasetNotFoundError, RunError, UnknownCompilerError
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.storage.filters import Filters

X = Input("input", Value("float32", (2,)))
TORCH = Sample("test/relu", "torch", "cv", (X,), (Op("torch.relu", (Ref(0),)),), Ref(1))
PADDLE = dataclasses.replace(TORCH, framework="paddle", ops=(Op("paddle._C_ops.relu", (Ref(0),)),))
BOTH = [PADDLE, dataclasses.replace(PADDLE, id="test/other"), TORCH]


def match(samples: list[Sample], *names: str, **filters: object) -> tuple[list[str], object]:
    chosen, compilers = match_compilers(samples, Filters(**filters), "graphnet", names)  # type: ignore[arg-type]
    rows = chosen.read(filters.get("limit"), compilers)  # type: ignore[arg-type]
    return [f"{row['framework']}:{row['id']}" for row in rows], compilers


def test_a_compiler_runs_the_samples_of_its_framework() -> None:
    assert match(BOTH, "inductor") == (["torch:test/relu"], {"torch": ["inductor"]})
    assert match(BOTH, "inductor", "paddle-to-static") == (
        ["paddle:test/relu", "paddle:test/other", "torch:test/relu"],
        {"torch": ["inductor"], "paddle": ["paddle-to-static"]},
    )


def test_a_limit_counts_only_runnable_samples() -> None:
    assert match(BOTH, "inductor", limit=1) == (["torch:test/relu"], {"torch": ["inductor"]})


def test_a_reference_is_torchs_where_there_are_both() -> None:
    name = "tests.candidates:Anything"
    assert match(BOTH, name) == (["torch:test/relu"], {"torch": [name]})
    assert match([PADDLE], name) == (["paddle:test/relu"], {"paddle": [name]})
    assert match(BOTH, name, framework=("paddle",))[1] == {"paddle": [name]}


@pytest.mark.parametrize(
    ("samples", "name", "filters", "message"),
    [
        ([PADDLE], "inductor", {}, r"There is no compiler `inductor` for paddle\. There are: "),
        (BOTH, "nothing", {}, r"There is no compiler `nothing` for torch\. There are: "),
        (BOTH, "inductor", {"framework": ("paddle",)}, "There is no compiler `inductor` for "),
    ],
)
def test_a_compiler_for_none_of_the_samples_is_refused(
    samples: list[Sample], name: str, filters: dict[str, object], message: str
) -> None:
    with pytest.raises(UnknownCompilerError, match=f"^{message}"):
        match(samples, name, **filters)


def test_nothing_to_run_is_an_error() -> None:
    message = "No sample was passed."
    with pytest.raises(RunError, match=f"^{re.escape(message)}"):
        match([], "inductor")
    with pytest.raises(DatasetNotFoundError, match=r"`--max-ops 0`\. Without `--max-ops 0`, 3 "):
        match(BOTH, "eager", max_ops=0)
    with pytest.raises(RunError, match=r"No compiler was passed\. Pass at least one name\.$"):
        match(BOTH)
