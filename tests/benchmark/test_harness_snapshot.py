from __future__ import annotations

import json
import sys
import types
from typing import Any

import pytest

from graphnet_datasets.benchmark.child import harness_snapshot
from graphnet_datasets.benchmark.child.harness_snapshot import HarnessSnapshot
from graphnet_datasets.timing import clocks
from graphnet_datasets.timing import pairs as timing


def test_importing_more_of_the_library_breaks_nothing() -> None:
    snapshot = HarnessSnapshot()
    import graphnet_datasets.benchmark.upstream.log  # noqa: F401

    assert snapshot.find_replaced() is None


def test_state_before_a_fork_is_compared_with_its_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(harness_snapshot, "_BEFORE", {})
    monkeypatch.setattr(harness_snapshot, "_MODULES", set())
    harness_snapshot.prepare_snapshots()
    assert HarnessSnapshot().find_replaced() is None
    monkeypatch.setattr(timing, "measure_pairs", lambda *_, **__: None)
    assert HarnessSnapshot().find_replaced() == "graphnet_datasets.timing.pairs.measure_pairs"


def test_a_module_that_came_after_the_fork_is_compared_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(harness_snapshot, "_BEFORE", {})
    monkeypatch.setattr(harness_snapshot, "_MODULES", set())
    harness_snapshot.prepare_snapshots()
    name = f"{clocks.__name__.partition('.')[0]}.came_later"
    module = types.ModuleType(name)
    module.measure = lambda: 1  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, name, module)
    snapshot = HarnessSnapshot()
    monkeypatch.setattr(module, "measure", lambda: 2)
    assert snapshot.find_replaced() == f"{name}.measure"


@pytest.mark.parametrize(
    ("owner", "name", "said"),
    [
        (timing, "measure_pairs", "graphnet_datasets.timing.pairs.measure_pairs"),
        (clocks.WallClock, "measure", "graphnet_datasets.timing.clocks.WallClock.measure"),
        (json, "dumps", "json.dumps"),
    ],
)
def test_a_function_that_was_replaced_is_named(
    owner: Any, name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = HarnessSnapshot()
    monkeypatch.setattr(owner, name, lambda *_, **__: None)
    assert snapshot.find_replaced() == said


def test_a_function_whose_code_was_replaced_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = HarnessSnapshot()
    monkeypatch.setattr(clocks.WallClock.now_s, "__code__", (lambda _: 0.0).__code__)
    assert snapshot.find_replaced() == "graphnet_datasets.timing.clocks.WallClock.now_s"


class Held:
    CHANGING = frozenset({"count"})

    def __init__(self) -> None:
        self.count, self.parts, self.named = 0, [1], {"a": 1}

    def draw(self) -> int:
        return self.count


class Other(Held):
    pass


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda held: setattr(held, "draw", lambda: 1), "Held.draw"),
        (lambda held: held.parts.append(2), "Held.parts"),
        (lambda held: held.named.update(a=1000), "Held.named"),
        (lambda held: setattr(held, "__class__", Other), "Held.__class__"),
        (lambda held: setattr(held, "count", 7), None),
    ],
)
def test_an_attribute_that_was_replaced_is_named(change: Any, said: str | None) -> None:
    snapshot, held = HarnessSnapshot(), Held()
    snapshot.hold(held)
    change(held)
    assert snapshot.find_replaced() == said


def test_a_constant_that_was_replaced_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = HarnessSnapshot()
    monkeypatch.setattr(timing, "_STABLE_LOOKS", 1000)
    assert snapshot.find_replaced() == "graphnet_datasets.timing.pairs._STABLE_LOOKS"
