"""Jobs of samples that wait in compressed form."""

from __future__ import annotations

import sys

from graphnet_datasets.benchmark.executors.jobs import MAX_UNPACKED, CandidateCompiler, SampleJob
from graphnet_datasets.sample import Input, Op, Sample, Statistics, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.schema import sample_to_row

CANDIDATE = ("id", CandidateCompiler("eager", "torch", {}, ""))


def chain(length: int) -> Sample:
    data = Input("input", Value("float32", (2, 3)), statistics=Statistics(0.0, 1.0))
    ops = tuple(Op("torch.exp", (Ref(place),)) for place in range(length))
    return Sample(f"a/{length}", "torch", "other", (data,), ops, Ref(length))


def test_a_packed_job_has_the_same_sample_row_and_candidates() -> None:
    sample = chain(3)
    row = {**sample_to_row(sample), "extra_column": 3}
    job = SampleJob(sample, row, [CANDIDATE])
    packed = job.packed()
    assert (packed.sample, packed.row, packed.candidates) == (sample, row, [CANDIDATE])
    assert packed.sample is packed.sample
    other = packed.with_candidates([])
    assert (other.sample, other.candidates, packed.candidates) == (sample, [], [CANDIDATE])


def test_few_packed_samples_are_cached() -> None:
    samples = [chain(length) for length in range(1, MAX_UNPACKED + 3)]
    jobs = [SampleJob(sample, sample_to_row(sample), ()).packed() for sample in samples]
    first = jobs[0].sample
    assert sys.getrefcount(first) > 2, "it is cached"
    assert [job.sample for job in jobs] == samples
    assert sys.getrefcount(first) == 2, "only this function has it"
