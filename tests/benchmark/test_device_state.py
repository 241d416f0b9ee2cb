"""Clocks and throttling of a GPU, asked of a driver that is played by its documented answers."""

from __future__ import annotations

from typing import Any

import pytest

from graphnet_datasets.benchmark.child.device_state import is_throttled, read_device_state
from graphnet_datasets.schema.runs import DEVICE_STATE_FIELDS


class Nvml:
    """The part of `pynvml` that is asked, with the answers of one driver."""

    class NVMLError(Exception):
        pass

    def __init__(self, **answers: Any) -> None:
        self.answers = {
            "Init": None, "Shutdown": None, "DeviceGetHandleByIndex": "gpu",
            "DeviceGetHandleByUUID": "gpu", "DeviceGetTemperature": 61,
            "DeviceGetPowerUsage": 312_500, "DeviceGetCurrentClocksEventReasons": 0x4, **answers,
        }  # fmt: skip
        self.asked: list[tuple[Any, ...]] = []

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:  # noqa: N802
        assert handle == "gpu"
        return {1: 1755, 2: 2619}[kind]

    def __getattr__(self, name: str) -> Any:
        if name.removeprefix("nvml") not in self.answers:
            raise AttributeError(name)

        def ask(*arguments: Any) -> Any:
            self.asked.append((name, *arguments))
            answer = self.answers[name.removeprefix("nvml")]
            if answer is Nvml.NVMLError:
                raise Nvml.NVMLError
            return answer

        return ask


@pytest.fixture(autouse=True)
def no_renumbering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_the_device_state_has_the_fields_of_the_schema() -> None:
    nvml = Nvml()
    state = read_device_state("cuda:1", nvml)
    assert state == {
        "sm_clock_mhz": 1755,
        "memory_clock_mhz": 2619,
        "temperature_c": 61,
        "power_w": 312.5,
        "throttle_reasons": ["sw_power_cap"],
    }
    assert [*state] == [field.name for field in DEVICE_STATE_FIELDS]
    assert ("nvmlDeviceGetHandleByIndex", 1) in nvml.asked
    assert nvml.asked[-1] == ("nvmlShutdown",)
    assert is_throttled(state)


def test_a_renumbered_gpu_is_found_by_its_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b")
    nvml = Nvml()
    read_device_state("cuda:1", nvml)
    assert ("nvmlDeviceGetHandleByUUID", b"GPU-b") in nvml.asked


def test_a_driver_with_the_older_name_is_asked_by_it() -> None:
    nvml = Nvml(
        DeviceGetCurrentClocksEventReasons=Nvml.NVMLError,
        DeviceGetCurrentClocksThrottleReasons=0x1,
    )
    state = read_device_state("cuda", nvml)
    assert state is not None
    assert state["throttle_reasons"] == ["gpu_idle"]
    assert not is_throttled(state)


def test_a_figure_that_the_driver_does_not_give_is_missing() -> None:
    state = read_device_state("cuda", Nvml(DeviceGetPowerUsage=Nvml.NVMLError))
    assert state is not None
    assert (state["power_w"], state["temperature_c"]) == (None, 61)


@pytest.mark.parametrize("broken", ["Init", "DeviceGetHandleByIndex"])
def test_without_a_driver_there_is_no_state(broken: str) -> None:
    assert read_device_state("cuda", Nvml(**{broken: Nvml.NVMLError})) is None


@pytest.mark.gpu
def test_the_state_of_this_gpu() -> None:
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    state = read_device_state("cuda")
    assert state is not None
    assert state["sm_clock_mhz"] > 0
    assert isinstance(state["throttle_reasons"], list)
