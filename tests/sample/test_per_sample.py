"""What is kept for a sample, for as long as it lives."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from graphnet_datasets.sample import Sample
from graphnet_datasets.sample.per_sample import PerSample


def empty() -> Sample:
    return Sample("test/empty", "torch", "other", (), (), ())


def test_equal_samples_are_distinguished() -> None:
    known, first, second = PerSample[str](), empty(), empty()
    assert first == second
    assert known.put(first, "first") == "first"
    assert known.get(first) == "first"
    assert known.get(second) is None
    known.put(second, "second")
    assert (known.get(first), known.get(second)) == ("first", "second")


@pytest.mark.slow
def test_it_is_forgotten_with_its_sample() -> None:
    known = PerSample[int]()
    samples = [empty() for _ in range(3)]
    for number, sample in enumerate(samples):
        known.put(sample, number)
    known.put(samples[0], 10)  # in the place of what was there
    assert len(known) == 3
    del sample
    for left in (2, 1, 0):
        samples.pop()
        gc.collect()
        assert len(known) == left


def test_samples_that_outlive_the_module_end_quietly() -> None:
    code = """
import sys
from graphnet_datasets.sample import Sample
from graphnet_datasets.sample.per_sample import PerSample
known = PerSample()
sys.keeps_it_to_the_end = sample = Sample("test/empty", "torch", "other", (), (), ())
known.put(sample, 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
