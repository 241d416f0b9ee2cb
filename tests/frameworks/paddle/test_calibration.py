"""Calibration on paddle, and draws that are the same for both frameworks."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from graphnet_datasets import Sample, calibrate, make_inputs, materialize, translate
from graphnet_datasets.errors import CalibrationError
from graphnet_datasets.frameworks import measure_signal
from graphnet_datasets.sample import Input, Op
from graphnet_datasets.sample.arguments import Ref
from tests.frameworks.torch.test_calibration import HARD
from tests.frameworks.torch.test_signal_calibration import attention

from .installed import paddle

pytestmark = pytest.mark.paddle


def on_paddle(name: str) -> Sample:
    return translate(HARD[name])


@pytest.mark.parametrize("name", ["variances near zero", "kernels too small"])
def test_no_draw_overflows_or_vanishes_once_calibrated(name: str) -> None:
    fitted = calibrate(on_paddle(name))
    assert fitted.calibration == "calibrated"
    for seed in (0, 5, 6):
        output = materialize(fitted)(**make_inputs(fitted, seed))
        assert 1e-3 < float(paddle.abs(output).max()) < 1e3


@pytest.mark.parametrize("mode", ["replay", "fresh", "probe"])
@pytest.mark.parametrize("name", ["variances near zero", "variances without a minimum"])
def test_both_frameworks_draw_the_same_numbers(name: str, mode: str) -> None:
    for sample in (HARD[name], calibrate(HARD[name])):
        theirs = make_inputs(translate(sample), 3, mode)  # pyright: ignore[reportArgumentType]
        for key, tensor in make_inputs(sample, 3, mode).items():  # pyright: ignore[reportArgumentType]
            assert np.array_equal(tensor.numpy(), theirs[key].numpy())


def test_both_frameworks_find_about_the_same_statistics() -> None:
    name = "kernels too small"
    ours, theirs = calibrate(HARD[name]), calibrate(on_paddle(name))
    for one, other in zip(ours.inputs, theirs.inputs, strict=True):
        assert (one.calibrated is None) == (other.calibrated is None)
        if one.calibrated is not None and other.calibrated is not None:
            assert one.calibrated.std == pytest.approx(other.calibrated.std, rel=1e-3)


def test_a_graph_that_does_not_run_says_where() -> None:
    sample = on_paddle("kernels too small")
    inputs: tuple[Input, ...] = sample.inputs
    narrow = dataclasses.replace(inputs[0].value, shape=(4, 3))
    broken = dataclasses.replace(
        sample,
        ops=(Op("paddle._C_ops.matmul", (Ref(0), Ref(len(inputs) - 1), False, False)),),
        inputs=(dataclasses.replace(inputs[0], value=narrow), *inputs[1:]),
        outputs=Ref(len(inputs)),
    )  # fmt: skip
    with pytest.raises((CalibrationError, RuntimeError), match="calibration/sample"):
        calibrate(broken)


def test_another_device_than_the_cpu_is_refused() -> None:
    with pytest.raises(CalibrationError, match="is calibrated on the CPU, not on 'cuda:0'"):
        calibrate(on_paddle("kernels too small"), device="cuda:0")


def test_both_frameworks_measure_about_the_same_signal() -> None:
    sample = attention(0.01, is_fused=False)
    fitted = calibrate(translate(sample))
    ours, theirs = measure_signal(calibrate(sample)), measure_signal(fitted)
    assert fitted.inputs[0].signal == "features"
    assert theirs.outcome == "reached"
    assert theirs.attention_entropy == pytest.approx(ours.attention_entropy, abs=0.05)
    assert theirs.input_sensitivity == pytest.approx(ours.input_sensitivity, abs=0.05)
