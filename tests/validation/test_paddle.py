"""The checks that run samples of paddle: each passes on what is right and fails on what is not."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from graphnet_datasets import Sample, extract, load_dataset
from graphnet_datasets.sample import Provenance
from graphnet_datasets.transforms import Decomposition, decompose
from graphnet_datasets.validation import CHECKS, Validator, parts
from graphnet_datasets.validation.reading import Failed
from tests.frameworks.paddle.installed import paddle

from .checking import assert_found, found
from .graphs import (
    PADDLE_MISTYPED,
    PADDLE_MIXED,
    PADDLE_ROUNDED,
    PADDLE_SLOPED,
    PADDLE_UNCUT,
)

pytestmark = pytest.mark.paddle

RELABELLED = dataclasses.replace(
    PADDLE_MIXED,
    provenance=Provenance(capture="to_static", framework_version=paddle.version.full_version),
)
"""Says of itself that paddle's tracer gave it, which would not have given `operator.mul`."""

OTHER_FORM = r"lost 1 `operator\.mul`; gained 3 `paddle\._C_ops\.full`, 1 `paddle\._C_ops\.scale`"


@pytest.mark.filterwarnings("ignore:When training, we now always track")
def test_a_captured_layer_passes_every_check(validator: Validator) -> None:
    layer = extract(name="test/layer")(
        paddle.nn.Sequential(paddle.nn.Conv2D(1, 2, 3), paddle.nn.BatchNorm2D(2), paddle.nn.ReLU())
    )
    layer(paddle.rand([2, 1, 8, 8]))  # in train mode: it writes into its buffers
    (sample,) = layer.samples
    validation = validator.validate(sample)
    assert [(each.check, each.outcome) for each in validation.results] == [
        (name, "passed") for name in CHECKS
    ], validation.why_excluded
    assert validation["decomposable"].reason == "Cut into 3 parts."
    assert validation["reextractable"].reason == ""
    assert set(validation["runnable"].versions) == {"graphnet-datasets", "python", "paddlepaddle"}


@pytest.mark.parametrize("name", ["lenet-dynamic", "gru-lm-small", "fno-2d-small"])
def test_embedded_graphs_are_captured_again_as_they_are(validator: Validator, name: str) -> None:
    filters = [("id", "==", f"paddle/{name}")]
    dataset: Any = load_dataset("graphnet", "all", "all", filters=filters)
    sample = Sample.from_row(dataset[0])
    assert found(validator, sample, "reextractable") == ("passed", "")
    assert found(validator, sample, "decomposable")[0] == "passed"


@pytest.mark.parametrize(
    ("sample", "check", "outcome", "reason"),
    [
        (PADDLE_MIXED, "statically_analysable", "passed", ""),
        (
            PADDLE_UNCUT, "statically_analysable", "passed",
            r"Shapes or dtypes are known only by running the graph: 2 of 2 operators, of them 0 "
            r"\(`paddle\._C_ops\.nonzero`\), 1 \(`paddle\._C_ops\.cast`\)\.",
        ),
        (PADDLE_MIXED, "runnable", "passed", ""),
        (PADDLE_MIXED, "decomposable", "passed", r"Cut into 4 parts\."),
        (
            PADDLE_MIXED, "reextractable", "passed",
            rf"A second capture has the form of paddle [0-9.]+ \({OTHER_FORM}\)\. It returns the "
            r"same bits, and capturing it changes nothing\.",
        ),
        (
            PADDLE_SLOPED, "reextractable", "passed",
            r"A second capture has the form of paddle [0-9.]+ \(the same 1 operators with "
            r"literals rounded to 32 bits\)\. It returns the same bits, and capturing it changes "
            r"nothing\.",
        ),
        (
            RELABELLED, "reextractable", "failed",
            rf"A second capture has another structure: {OTHER_FORM}\.",
        ),
        (
            PADDLE_ROUNDED, "reextractable", "failed",
            r"It cannot be captured again: The graph captured for `again` does not compute the "
            r"results of the layer: output 0 differs by up to .*",
        ),
        (
                PADDLE_MISTYPED, "runnable", "failed",
                r"Op 0 \(`paddle._C_ops.matmul`\) fails on a CPU, .*: ValueError: "
                r"\(InvalidArgument\) matmul\(\).*",
            ),
        (
            PADDLE_MISTYPED, "reextractable", "failed",
            "It cannot be captured again: `again` cannot be traced into one program: .*",
        ),
        (
            PADDLE_UNCUT, "decomposable", "failed",
            r"The sample cannot be cut: at every operator, a tuple or a tensor of unknown size "
            r"crosses, or a region \(autocast, vmap\) is open\.",
        ),
        (
            PADDLE_ROUNDED, "decomposable", "skipped",
            r"The sample is too small to cut: it has 1 operators\.",
        ),
    ],
    ids=lambda value: value.id if isinstance(value, Sample) else None,
)  # fmt: skip
def test_one_check(
    validator: Validator, sample: Sample, check: str, outcome: str, reason: str
) -> None:
    assert_found(validator, sample, check, outcome, reason)


def test_parts_that_give_other_bits_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    from graphnet_datasets.validation.jobs import Terms
    from graphnet_datasets.validation.paddle_worker import decomposable

    def decompose_wrongly(sample: Sample, num_parts: int) -> Decomposition:
        whole = decompose(sample, num_parts)
        *others, last = whole.parts
        (*before, op) = last.sample.ops
        assert op.target == "paddle._C_ops.matmul"
        changed = dataclasses.replace(op, args=(*op.args[:2], False, False))  # not transposed
        sample = dataclasses.replace(last.sample, ops=(*before, changed))
        return dataclasses.replace(whole, parts=(*others, dataclasses.replace(last, sample=sample)))

    terms = Terms(2**30, trust_remote_code=False)
    assert decomposable(PADDLE_MIXED, terms) == "Cut into 4 parts."
    monkeypatch.setattr(parts, "decompose", decompose_wrongly)
    with pytest.raises(Failed, match=r"cut into \d parts, output 0 is no longer bit-equal"):
        decomposable(PADDLE_MIXED, terms)
