"""Each check passes on what is right and fails on what is wrong, with the reason."""

from __future__ import annotations

import dataclasses
import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from graphnet_datasets import Sample, load_dataset, validate
from graphnet_datasets.errors import SampleError
from graphnet_datasets.frameworks.torch.extract import extract
from graphnet_datasets.sample import Input, Statistics, hash_source
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.storage.table import read_table, write_table
from graphnet_datasets.validation import CHECKS, CheckResult, Validation, Validator, reading
from graphnet_datasets.validation.jobs import Terms
from graphnet_datasets.validation.torch_worker import captured_again

from .checking import assert_found, found
from .graphs import (
    BREAKS,
    CHANGED_SOURCE,
    CHUNKS,
    CUSTOM,
    DIVIDES,
    MASKS,
    NONZERO,
    UNNAMED_PLACE,
    VALID,
    WITH_SOURCE,
    WRONG_SHAPES,
    X,
)


def test_a_valid_sample_passes_every_check(validator: Validator) -> None:
    validation = validator.validate(VALID)
    assert [(each.check, each.outcome) for each in validation.results] == [
        (name, "passed") for name in CHECKS
    ]
    assert (validation.is_valid, validation.why_excluded) == (True, "")
    assert validation["decomposable"].reason == "Cut into 3 parts."
    assert set(validation["runnable"].versions) == {"graphnet-datasets", "python", "torch"}


def test_an_embedded_graph_is_valid(validator: Validator) -> None:
    dataset: Any = load_dataset("graphnet", "all", "all", filters=[("id", "==", "torch/deepfm")])
    validation = validator.validate(Sample.from_row(dataset[0]))
    assert [each.outcome for each in validation.results] == ["passed"] * len(CHECKS)


def test_a_graph_that_runs_and_breaks_when_captured_again_is_not_valid(
    validator: Validator,
) -> None:
    # Upstream's validation ran such graphs and passed them.
    checks = ["serializable", "runnable", "decomposable", "reextractable"]
    validation = validator.validate(BREAKS, checks)
    assert [each.outcome for each in validation.results] == ["passed"] * 3 + ["failed"]
    assert not validation.is_valid
    reason = validation["reextractable"].reason
    assert reason.startswith("A second capture breaks into 2 graphs: Tensor.tolist()")
    assert validation.why_excluded == f"reextractable: {reason}"


def test_sizes_that_are_no_symbols_stay_numbers_when_captured_again() -> None:
    class Mixed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(6, 5)

        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return self.linear(x).masked_fill(mask, 0.0)

    capturing: Any = extract(name="mixed")(Mixed())
    x = torch.randn(3, 4, 6)
    torch._dynamo.mark_dynamic(x, 1)
    capturing(x, torch.zeros(3, 1, 5, dtype=torch.bool))
    (sample,) = capturing.samples
    (again,) = captured_again(sample, Terms(2**30, trust_remote_code=False))
    assert len(sample.symbols) == 1  # and not the sizes of the weights and the mask as well
    shapes = [sorted(str(i.value.shape) for i in each.inputs) for each in (sample, again)]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize(
    ("sample", "check", "outcome", "reason"),
    [
        (DIVIDES, "runnable", "failed", "The outputs hold 16 NaN elements."),
        (WRONG_SHAPES, "runnable", "failed", r"RuntimeError: shape '\[7, 7\]' is invalid for .*"),
        (
            MASKS, "runnable", "passed",
            r"The outputs hold \d+ infinite elements; the graph itself writes infinities "
            r"\(a mask\)\.",
        ),
        (
            CUSTOM, "custom_operators_accessible", "failed",
            "`torch.ops.mylib.fused_gelu.default` is missing: it is not in the operator table of "
            "torch, and the sample does not contain its source.",
        ),
        (CUSTOM, "runnable", "failed", "UnknownOperatorError: Op 0 of `test/custom` cannot .*"),
        (CUSTOM, "statically_analysable", "failed", ".* is not in the operator table of torch.*"),
        (
            NONZERO, "statically_analysable", "passed",
            r"Shapes or dtypes are known only by running the graph: 1 of 2 operators, of them 1 "
            r"\(`torch.nonzero`\)\.",
        ),
        (VALID, "custom_operators_accessible", "passed", "The sample has no custom operators."),
        (CHUNKS, "decomposable", "failed", "The sample cannot be cut: .*"),
        (
            dataclasses.replace(VALID, ops=VALID.ops[:1], outputs=VALID.ops[0].args),
            "decomposable", "skipped", "The sample is too small to cut: it has 1 operators.",
        ),
    ],
    ids=lambda value: value.id if isinstance(value, Sample) else None,
)  # fmt: skip
def test_one_check(
    validator: Validator, sample: Sample, check: str, outcome: str, reason: str
) -> None:
    assert_found(validator, sample, check, outcome, reason)


@pytest.mark.slow
def test_custom_operators_run_where_that_is_allowed() -> None:
    refused = validate(WITH_SOURCE)
    assert [each.outcome for each in refused.results] == ["passed"] * 3 + ["skipped"] * 3
    (operator,) = WITH_SOURCE.custom_operators
    assert refused["custom_operators_accessible"].reason == (
        f"The source of `graphnet_tests::double {operator.source_hash[:16]}` comes with the sample."
    )
    assert refused["runnable"].reason == (
        "It would run the source of custom operators, which was not allowed."
    )
    allowed = validate(WITH_SOURCE, trust_remote_code=True)
    assert [each.outcome for each in allowed.results] == ["passed"] * len(CHECKS), allowed
    changed = validate(CHANGED_SOURCE, ["custom_operators_accessible", "runnable"])
    assert changed.why_excluded == (
        "custom_operators_accessible: The source of `graphnet_tests::double` does not have the "
        "recorded hash."
    )


def test_a_sample_that_takes_more_than_it_may_is_skipped() -> None:
    with Validator(memory_limit_bytes=10) as validator:
        outcome, reason = found(validator, VALID, "runnable")
    assert outcome == "skipped"
    assert reason.startswith("The inputs of `test/graph` take")


@pytest.mark.parametrize(
    ("signal_number", "outcome"), [(signal.SIGKILL, "skipped"), (signal.SIGSEGV, "failed")]
)
def test_a_process_that_is_killed_from_outside_says_nothing_of_the_sample(
    signal_number: int, outcome: str
) -> None:
    # A machine out of memory once made a valid sample fail: the kernel had killed its process.
    sleeps = (
        "import os, time\n\n\ndef double(x):\n"
        f"    os.kill(os.getpid(), {int(signal_number)})\n    time.sleep(60)\n    return x + x\n"
    )
    (operator,) = WITH_SOURCE.custom_operators
    killed = dataclasses.replace(operator, source=sleeps, source_hash=hash_source(sleeps))
    sample = dataclasses.replace(WITH_SOURCE, custom_operators=(killed,))
    result = validate(sample, ["runnable"], trust_remote_code=True)["runnable"]
    assert result.outcome == outcome
    assert ("killed from outside" in result.reason) == (outcome == "skipped"), result.reason


def test_a_sample_that_comes_back_changed_is_not_serializable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A writer that loses statistics, as a GraphNet directory without our file would.
    write = reading.write_directory

    def write_without_statistics(sample: Sample, path: Any) -> Any:
        inputs = tuple(dataclasses.replace(each, statistics=None) for each in sample.inputs)
        return write(dataclasses.replace(sample, inputs=inputs), path)

    measured = Input(X.role, X.value, statistics=Statistics(0.5, 1.0, -2.0, 2.0))
    sample = dataclasses.replace(VALID, inputs=(measured,))
    assert validate(sample, ["serializable"]).is_valid
    monkeypatch.setattr(reading, "write_directory", write_without_statistics)
    assert validate(sample, ["serializable"])["serializable"].reason == (
        "Written as a GraphNet directory and read back, it differs in `inputs`."
    )


def test_samples_of_paddle_are_read_without_paddle() -> None:
    # Then only what the sample records is known, which is nothing here.
    found = [
        reading.check(name, UNNAMED_PLACE, {})
        for name in ("custom_operators_accessible", "statically_analysable")
    ]
    assert [each.outcome for each in found] == ["passed", "passed"]
    assert found[1].reason.startswith(
        "Shapes or dtypes are known only by running the graph: 1 of 1"
    )


def test_an_unknown_check_is_refused() -> None:
    message = f"There is no check `speed`. The checks are {', '.join(CHECKS)}."
    with pytest.raises(SampleError, match=f"^{re.escape(message)}$"):
        validate(VALID, ["speed"])


@pytest.mark.parametrize("outcome", ["passed", "failed"])
def test_a_validation_is_columns_of_the_table_and_back(tmp_path: Path, outcome: Any) -> None:
    validation = Validation(
        VALID.id,
        (
            CheckResult("serializable", "passed", "", {"python": "3.11.9", "torch": "2.13.0"}),
            CheckResult("runnable", outcome, "It hangs.", {"torch": "2.13.0"}),
            CheckResult("decomposable", "skipped", "It is too large."),
        ),
    )
    row = sample_to_row(VALID, validation.to_columns())
    (read,) = read_table(write_table([row], tmp_path / "one.parquet")).to_pylist()
    assert Validation.from_row(read) == validation
    assert read["why_excluded"] == ("runnable: It hangs." if outcome == "failed" else None)
    assert Sample.from_row(read) == VALID


def test_a_validation_is_one_json_object() -> None:
    result = CheckResult("runnable", "failed", "It hangs.", {"torch": "2.13.0"})
    assert json.loads(Validation("test/a", (result,)).to_json()) == {
        "id": "test/a",
        "is_valid": False,
        "checks": [
            {
                "check": "runnable",
                "outcome": "failed",
                "reason": "It hangs.",
                "versions": {"torch": "2.13.0"},
            }
        ],
    }
    with pytest.raises(KeyError, match=r"The check `serializable` was not run on `test/a`\."):
        Validation("test/a", ())["serializable"]
