"""What the parent tells a worker is what the worker reads."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets.benchmark.handover import MAX_SET, JudgedCall
from graphnet_datasets.benchmark.settings import PHASE_TIMEOUTS_S, Settings
from graphnet_datasets.benchmark.worker_job import Kind, Turns, WorkerJob
from graphnet_datasets.timing.pairs import TimingSettings

counts = st.integers(1, 2**40)
texts = st.text(max_size=20)
seconds = st.floats(0.001, 1e6) | st.just(math.inf)
calls = st.lists(
    st.builds(
        JudgedCall,
        set_index=st.integers(0, MAX_SET),
        start=st.none() | st.integers(0, MAX_SET),
        is_candidate_first=st.booleans(),
    ),
    max_size=5,
).map(tuple)
options = st.dictionaries(
    texts,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
        lambda each: st.lists(each, max_size=3) | st.dictionaries(texts, each, max_size=3),
        max_leaves=5,
    ),
    max_size=3,
)
settings = st.builds(
    Settings,
    weights=st.sampled_from(["parameters", "inputs"]),
    input_mode=st.sampled_from(["replay", "probe"]),
    cache_mode=st.sampled_from(["warm", "cold"]),
    launch_mode=st.sampled_from(["stream", "cuda_graph"]),
    seed=st.integers(0, 2**31),
    num_input_sets=counts,
    num_threads=st.none() | counts,
    alone_calls=counts,
    memory_limit_bytes=st.none() | counts,
    has_oracle=st.booleans(),
    has_profile=st.booleans(),
    trust_remote_code=st.booleans(),
    phase_timeouts_s=st.dictionaries(st.sampled_from(sorted(PHASE_TIMEOUTS_S)), seconds),
    timing=st.builds(
        TimingSettings,
        precision=seconds,
        min_pairs=st.integers(3, 10),
        max_pairs=st.integers(10, 2000),
        budget_s=seconds,
        hard_budget_s=seconds,
        warmup_s=seconds,
        seed=st.integers(0, 2**31),
    ),
)
jobs = st.builds(
    WorkerJob,
    kind=st.sampled_from(get_args(Kind)),
    device=st.sampled_from(["cpu", "cuda:0"]),
    settings=settings,
    framework=texts,
    compiler=texts,
    options=options,
    again=calls,
    judged=calls,
    is_first=st.booleans(),
    is_fresh=st.booleans(),
    is_known_to_fit=st.booleans(),
    turns=st.none()
    | st.builds(
        Turns,
        of_eager=texts,
        of_candidate=texts,
        eager_ms=st.lists(seconds, max_size=4).map(tuple),
        is_fresh=st.booleans(),
    ),
)


@given(jobs)
def test_a_job_crosses_the_process_as_it_is(job: WorkerJob) -> None:
    assert WorkerJob.from_payload(json.loads(json.dumps(job.to_payload()))) == job


def test_every_field_of_a_job_crosses() -> None:
    job = WorkerJob(kind="peaks", device="cpu", settings=Settings())
    assert set(job.to_payload()) == {field.name for field in dataclasses.fields(job)}
