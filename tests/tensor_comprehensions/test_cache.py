"""The table of tuned options."""

from __future__ import annotations

import concurrent.futures
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphnet_datasets import load_dataset
from graphnet_datasets.errors import TensorComprehensionError
from graphnet_datasets.tensor_comprehensions.cache import (
    CacheKey,
    TuningCache,
    cache_key,
)
from graphnet_datasets.tensor_comprehensions.options import Options
from graphnet_datasets.tensor_comprehensions.tables import TC_CACHE_SCHEMA
from graphnet_datasets.tensor_comprehensions.tuner.config import Candidate

from .kernels import instance_of

KEY = CacheKey("d", ("float32[4]/1",), ("float32[4]/1",), "cpu", "A", "avx512", 2, "gcc 12")


def test_options_are_ranked_by_median_and_pruned(tmp_path: Path) -> None:
    cache = TuningCache(tmp_path / "cache.parquet")
    assert cache.best(KEY) is None
    found = [Candidate(Options(unroll=n), (float(20 - n), 1.0, 30.0)) for n in range(1, 16)]
    cache.add(KEY, [*found, Candidate(Options(), error="it crashed")])
    assert [each.unroll for each in cache.ranked(KEY)] == list(range(15, 5, -1))
    cache.add(KEY, [Candidate(Options(unroll=15), (40.0, 41.0, 42.0))])
    assert cache.best(KEY) == Options(unroll=14)


def test_merge_is_union_and_does_nothing_twice(tmp_path: Path) -> None:
    one, two = TuningCache(tmp_path / "1.parquet"), TuningCache(tmp_path / "2.parquet")
    other = CacheKey("e", KEY.inputs, KEY.outputs, "cpu", "A", "avx512", 2, "gcc 12")
    one.add(KEY, [Candidate(Options(unroll=2), (1.0,))])
    two.add(other, [Candidate(Options(unroll=4), (1.0,))])
    two.add(KEY, [Candidate(Options(unroll=8), (0.5,))])
    one.merge(two)
    assert (one.best(KEY), one.best(other)) == (Options(unroll=8), Options(unroll=4))
    before = one.table()
    one.merge(two)
    assert one.table().equals(before)


def test_another_machine_is_asked_for_only_where_allowed(tmp_path: Path) -> None:
    cache = TuningCache(tmp_path / "cache.parquet")
    cache.add(KEY, [Candidate(Options(unroll=2), (1.0,))])
    mine = CacheKey("d", KEY.inputs, KEY.outputs, "cpu", "B", "avx512", 2, "gcc 13")
    assert cache.best(mine) is None
    assert cache.best(mine, any_machine=True) == Options(unroll=2)


def test_key_is_the_same_under_renaming_only() -> None:
    one = instance_of("def f(float(N) A) -> (B) { B(i) = A(i) }", (6,))
    two = instance_of("def g(float(M) X) -> (Y) { Y(k) = X(k) }", (6,))
    three = instance_of("def g(float(M) X) -> (Y) { Y(k) = X(k) }", (7,))
    assert cache_key(one).digest == cache_key(two).digest != cache_key(three).digest


def test_options_of_a_stranger_cannot_add_flags(tmp_path: Path) -> None:
    cache = TuningCache(tmp_path / "cache.parquet")
    cache.add(KEY, [Candidate(Options(unroll=2), (1.0,))])
    row = cache.table().to_pylist()[0]
    hostile = [
        {**row, "median_ms": 0.1, "options": json.dumps({"extra_flags": 7})},
        {**row, "median_ms": 0.2, "options": "not JSON"},
        {**row, "median_ms": 0.3, "options": json.dumps({"compiler": "/tmp/evil"})},  # noqa: S108
        {**row, "median_ms": 0.4, "options": json.dumps({"shell": "rm"})},
    ]
    pq.write_table(pa.Table.from_pylist([*hostile, row], schema=TC_CACHE_SCHEMA), cache.path)
    assert cache.ranked(KEY) == [Options(unroll=2)]


def test_a_file_that_is_no_cache_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cache.parquet").write_text("hello")
    with pytest.raises(TensorComprehensionError, match="is not a table of tuned options"):
        TuningCache(tmp_path / "cache.parquet").table()


def _add(path: Path, number: int) -> None:
    key = CacheKey(str(number), KEY.inputs, KEY.outputs, "cpu", "A", "avx512", 2, "gcc 12")
    TuningCache(path).add(key, [Candidate(Options(), (1.0,))])


def test_many_writers_at_once_lose_no_row(tmp_path: Path) -> None:
    """The lock belongs to an open file, so that threads stand for processes here."""
    path = tmp_path / "cache.parquet"
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: _add(path, number), range(16)))
    found = TuningCache(path).table()["definition"].to_pylist()
    assert sorted(found) == sorted(map(str, range(16)))


def test_a_shared_cache_spares_a_cold_user_the_search(tmp_path: Path) -> None:
    """What one user tuned lies in a dataset's folder `tc_cache` and is read as any config is."""
    instance = instance_of("def f(float(N) A) -> (B) { B(i) = A(i) }", (6,))
    tuned = Options(unroll=4, threads=1)
    mine = TuningCache(tmp_path / "data" / "tc_cache" / "train-0000.parquet")
    mine.add(cache_key(instance, tuned), [Candidate(tuned, (1.0, 2.0, 3.0))])
    rows = load_dataset(str(tmp_path / "data"), "tc_cache", split="train")
    theirs = TuningCache(tmp_path / "theirs.parquet")
    theirs.merge(pa.Table.from_pylist(list(rows), schema=TC_CACHE_SCHEMA))
    assert theirs.best(cache_key(instance, Options(threads=1))) == tuned
