"""Runs of the embedded bugs: known wrong compilers are found wrong, right ones right."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

import pytest

from graphnet_datasets import load_dataset, run
from graphnet_datasets.benchmark.settings import Settings
from graphnet_datasets.compilers.registry import find_entry
from graphnet_datasets.scores import Expectation, compare_with_expected

SETTINGS = Settings(has_oracle=False, has_profile=False, num_threads=1, alone_calls=3)
CHEAP = {
    "torchscript": (
        "torchscript/view-dtype", "tvm/relu-nan", "openvino/uint8-add", "onnxruntime/max-pool-nan",
    ),
    "onnxruntime": ("onnxruntime/avg-pool-divisor", "onnxruntime/avg-pool-ceil"),
    "openvino": ("openvino/uint8-add", "openvino/relu-nan"),
    "tvm": ("tvm/relu-nan", "tvm/cumsum-uint8", "tvm/prod-dim", "tvm/fmod"),
    "inductor": ("inductor/half-round-trip", "inductor/uint8-sum-int16"),
}  # fmt: skip
"""Graphs of every test run: some that each compiler gets wrong, and some right (not OpenVINO)."""


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, Any]]:
    """Return the rows of the config by name."""
    table: Any = load_dataset("graphnet", "compiler_bugs", split="train")
    return {row["id"].removeprefix("compiler_bugs/"): row for row in table}


def expected(row: dict[str, Any], compiler: str, num_variations: int = 0) -> list[dict[str, Any]]:
    """Return the expected verdicts of a row for a compiler and a number of variations."""
    wanted = compiler, num_variations
    return [
        item for item in row["expected"] if (item["compiler"], item["num_variations"]) == wanted
    ]


def expectations_of(
    rows: Sequence[dict[str, Any]], compiler: str, num_variations: int = 0
) -> list[Expectation]:
    """Run rows under a compiler; skip the test where its version is not the measured one."""
    versions = {item["version"] for row in rows for item in expected(row, compiler)}
    framework = "paddle" if compiler.startswith("paddle") else "torch"
    installed = find_entry(compiler, framework).load()
    is_available, reason = installed.is_available()
    if not is_available:
        pytest.skip(reason)
    if installed.version() not in versions:
        pytest.skip(f"the verdicts are of {compiler} {', '.join(versions)}, not of this version")
    records: Any = run(
        list(rows), compiler=compiler, settings=SETTINGS, num_variations=num_variations
    )
    return compare_with_expected(rows, records)


def contradictions(expectations: Sequence[Expectation]) -> list[Expectation]:
    """Return the verdicts that are not as expected; records without a verdict contradict none."""
    return [
        expectation
        for expectation in expectations
        if expectation.actual is not None and not expectation.is_met
    ]


def test_the_config_is_a_suite_of_reported_and_verified_bugs(
    rows: dict[str, dict[str, Any]],
) -> None:
    reported = [row for row in rows.values() if row["bug_url"] is not None]
    assert len(reported) >= 60
    assert sum(row["is_verified"] for row in reported) >= 30
    verified = collections.Counter(
        row["bug_compiler"] for row in rows.values() if row["is_verified"]
    )
    assert {"inductor", "torchscript", "onnxruntime", "openvino", "tvm"} <= verified.keys()


@pytest.mark.parametrize(
    "compiler",
    [
        pytest.param(name, marks=pytest.mark.slow if name in ("inductor", "tvm") else ())
        for name in CHEAP
    ],
)
def test_known_verdicts_of_a_few_graphs(rows: dict[str, dict[str, Any]], compiler: str) -> None:
    expectations = expectations_of([rows[name] for name in CHEAP[compiler]], compiler)
    assert len(expectations) == len(CHEAP[compiler])
    assert contradictions(expectations) == []
    assert any(expectation.is_met for expectation in expectations)


@pytest.mark.slow
@pytest.mark.parametrize(
    "compiler",
    [
        "torchscript", "onnxruntime", "openvino", "tvm", "iree", "paddle-to-static",
        "paddle-inference", "inductor",
    ],
)  # fmt: skip
def test_all_known_verdicts(rows: dict[str, dict[str, Any]], compiler: str) -> None:
    measured = [row for row in rows.values() if expected(row, compiler)]
    if not measured:
        pytest.skip(f"no verdict of {compiler} is measured")
    expectations = expectations_of(measured, compiler)
    assert len(expectations) == len(measured)
    assert contradictions(expectations) == []
    assert sum(expectation.is_met for expectation in expectations) > 0.8 * len(expectations)


@pytest.mark.slow
def test_a_stale_number_is_found_by_calls_with_other_numbers(
    rows: dict[str, dict[str, Any]],
) -> None:
    varied = [row for row in rows.values() if expected(row, "inductor", 3)]
    (expectation,) = expectations_of(varied, "inductor", num_variations=3)
    assert (expectation.expected, contradictions([expectation])) == ("wrong", [])
