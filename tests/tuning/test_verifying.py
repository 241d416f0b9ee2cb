"""Verifier of workloads, traces and targets: attacks, fuzzing and the shipped tables."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from graphnet_datasets.compilers.tvm import native_processor
from graphnet_datasets.errors import UntrustedCodeError, UnverifiedProgramError
from graphnet_datasets.storage.loading import STARTER
from graphnet_datasets.tuning import Candidate, Origin, Task, TrialStatus
from graphnet_datasets.tuning.verifying import verify_target, verify_trace, verify_workload

needs_tvm = pytest.mark.skipif(
    importlib.util.find_spec("tvm") is None, reason="needs TVM, the extra `tvm`"
)
TARGET = '{"keys":["cpu"],"kind":"llvm","mcpu":"znver4","num-cores":1,"tag":""}'


def shipped(config: str, column: str) -> list[str]:
    files = sorted((STARTER / config).glob("*.parquet"))
    return [text for file in files for text in pq.read_table(file)[column].to_pylist()]


@pytest.fixture(scope="module")
def workloads() -> list[str]:
    return sorted(set(shipped("tuning_tasks", "workload_json")), key=len)


def test_everything_that_is_shipped_passes(workloads: list[str]) -> None:
    for text in workloads:
        assert json.loads(verify_workload(text)) == json.loads(text)
    for text in set(shipped("tuning_tasks", "target_json")):
        verify_target(text)
    traces = shipped("tuning_records", "trace_json")
    assert len(traces) > 8000
    for text in traces:
        assert verify_trace(text) == json.loads(text)


def test_the_version_in_a_database_of_tvm_is_left_out(workloads: list[str]) -> None:
    content = json.loads(workloads[0])
    text = json.dumps({**content, "metadata": {"tvm_version": "0.27.0"}})

    assert json.loads(verify_workload(text)) == content


Edit = Callable[[list[dict[str, Any]]], None]


def edited(text: str, edit: Edit) -> str:
    content = json.loads(text)
    edit(content["nodes"])
    return json.dumps(content)


def node_of(nodes: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(node for node in nodes if node["type"] == kind)


def set_field(kind: str, field: str, value: Any) -> Edit:
    def edit(nodes: list[dict[str, Any]]) -> None:
        node_of(nodes, kind)["data"][field] = value

    return edit


def set_type(kind: str, other: str) -> Edit:
    def edit(nodes: list[dict[str, Any]]) -> None:
        node_of(nodes, kind)["type"] = other

    return edit


def largest_number(nodes: list[dict[str, Any]], place: int) -> int:
    """Return the index of the largest integer constant before a node."""
    before = [index for index in range(place) if nodes[index]["type"] == "ir.IntImm"]
    return max(before, key=lambda index: nodes[nodes[index]["data"]["value"]]["data"])


def move_index(nodes: list[dict[str, Any]]) -> None:
    """Let a load read far behind the end of its buffer."""
    load = node_of(nodes, "ir.TensorLoad")
    place = load["data"]["indices"]
    nodes[place]["data"][-1] = largest_number(nodes, place)


def grow_loop(nodes: list[dict[str, Any]]) -> None:
    """Give the loops as many iterations as the largest number in the program."""
    for place, node in enumerate(nodes):
        if node["type"] == "tirx.For":
            node["data"]["extent"] = largest_number(nodes, place)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (set_type("prim.Add", "prim.Shuffle"), "has a node `prim.Shuffle`"),
        (set_type("tirx.SeqStmt", "tirx.AttrStmt"), "has a node `tirx.AttrStmt`"),
        (set_type("ir.DictAttrs", "ir.EnvFunc"), "has a node `ir.EnvFunc`"),
        (set_field("tirx.For", "kind", 4), "has `4` as `kind` of a node `tirx.For`"),
        (set_field("tirx.BufferType", "data_alignment", 2**40), "as `data_alignment`"),
        (set_field("ir.PrimType", "dtype", "handle"), "has `handle` as `dtype`"),
        (set_field("ir.PrimType", "dtype", "float32x8"), "has `float32x8` as `dtype`"),
        (set_field("tirx.For", "body", 10**6), "refers to no node before it"),
        (set_field("tirx.For", "pragma", 0), "with other fields than"),
        (move_index, "A workload may use the elements"),
        (grow_loop, "binds an axis of a block outside of its domain"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_programs_are_refused_by_name(workloads: list[str], edit: Edit, message: str) -> None:
    text = next(text for text in workloads if "tirx.SeqStmt" in text and "prim.Add" in text)
    verify_workload(text)
    with pytest.raises(UnverifiedProgramError, match=re.escape(message)) as caught:
        verify_workload(edited(text, edit))
    assert "--trust-remote-code" in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "tirx.call_extern", "tirx.call_pure_extern", "tirx.tvm_call_packed",
        "tirx.call_llvm_intrin", "tirx.address_of", "tirx.tvm_access_ptr", "tirx.reinterpret",
        "tirx.tvm_struct_set", "tirx.cuda.func_call",
    ],
)  # fmt: skip
def test_other_intrinsics_are_refused_by_name(workloads: list[str], name: str) -> None:
    text = next(text for text in workloads if '"ir.Op"' in text)

    def edit(nodes: list[dict[str, Any]]) -> None:
        node_of(nodes, "ir.Op")["data"] = name

    with pytest.raises(UnverifiedProgramError, match=f"calls `{re.escape(name)}`"):
        verify_workload(edited(text, edit))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"root_index":0,"nodes":[],"nodes":[{"type":"None"}]}', "two keys of one name"),
        ("[" * 100_000, "is not JSON"),
        ("{}", "is not an object of `root_index`"),
        (json.dumps({"root_index": 0, "nodes": [{"type": "None"}] * 200_000}), "at most 100000"),
    ],
    ids=["two keys", "deep", "empty", "large"],
)
def test_other_json_is_refused(text: str, message: str) -> None:
    with pytest.raises(UnverifiedProgramError, match=message):
        verify_workload(text)


def test_a_shared_node_does_not_make_an_endless_tree(workloads: list[str]) -> None:
    content = json.loads(workloads[0])
    nodes = content["nodes"]
    types = next(i for i, node in enumerate(nodes) if node["type"] == "ir.PrimType")
    span = next(i for i, node in enumerate(nodes) if node["type"] == "None")
    value = next(i for i, node in enumerate(nodes) if node["type"] == "ir.IntImm")
    for _ in range(60):
        data = {"span": span, "ty": types, "a": value, "b": value}
        value = len(nodes)
        nodes.append({"type": "prim.Add", "data": data})
    with pytest.raises(UnverifiedProgramError, match="larger than 1000000 as a tree"):
        verify_workload(json.dumps(content))


@pytest.mark.parametrize(
    ("instruction", "name"),
    [
        (["Annotate", ["b0", '"define void @f()"'], ["pragma_import_llvm"], []],
         "pragma_import_llvm"),
        (["Annotate", ["b0", 1], ["pragma_import_c"], []], "pragma_import_c"),
        (["Annotate", ["b0", '"run"'], ["schedule_rule"], []], "schedule_rule"),
        (["Annotate", ["b0", {"a": 1}], ["meta_schedule.parallel"], []], "Annotate"),
        (["Tensorize", ["b0"], ["evil", False], []], "Tensorize"),
        (["UnsafeSetDType", ["b0"], [0, "float64"], []], "UnsafeSetDType"),
        (["UnsafeHideBufferAccess", ["b0"], ["read", [0]], []], "UnsafeHideBufferAccess"),
        (["TransformLayout", ["b0"], [0, 0, "map"], []], "TransformLayout"),
        (["CacheRead", ["b0", []], [0, "shared.dyn"], ["b1"]], "CacheRead"),
        (["GetSBlock", [], ["root", "other"], ["b1"]], "GetSBlock"),
        (["Parallel", ["l7"], [], []], "Parallel"),
    ],
)  # fmt: skip
def test_other_instructions_are_refused_by_name(instruction: list[Any], name: str) -> None:
    begin = ["GetSBlock", [], ["root", "main"], ["b0"]]
    verify_trace(json.dumps([[begin], []]))
    with pytest.raises(UnverifiedProgramError, match=f"`{name}`"):
        verify_trace(json.dumps([[begin, instruction], []]))


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "c"}, {"kind": "cuda"}, {"cl-opt": ["-load=/evil.so"]}, {"host": "llvm"},
        {"libs": ["evil"]}, {"mcpu": "znver4 -load"}, {"tag": "nvidia/nvidia-h100"},
        {"num-cores": True}, {"keys": ["gpu"]}, {"mtriple": "x"}, {"jit": "mcjit"},
    ],
    ids=str,
)  # fmt: skip
def test_other_targets_are_refused(changes: dict[str, Any]) -> None:
    verify_target(TARGET)
    (name,) = changes
    with pytest.raises(UnverifiedProgramError, match=f"key `{name}`"):
        verify_target(json.dumps({**json.loads(TARGET), **changes}))


def task_that_runs(command: str) -> Task:
    """Return a task whose workload calls `system`."""
    from graphnet_datasets.tuning.extract import make_task, target_text, workload_text

    tvm: Any = importlib.import_module("tvm")
    te: Any = importlib.import_module("tvm.te")
    tirx: Any = importlib.import_module("tvm.tirx")
    source = te.placeholder((4,), "int32", "source")
    done = te.compute((4,), lambda i: source[i] + tirx.call_extern("int32", "system", command))
    function = te.create_prim_func([source, done]).with_attr("global_symbol", "main")
    workload = tvm.IRModule({"main": function})
    kind = {"kind": "llvm", "mcpu": native_processor(), "num-cores": 1}
    target = target_text(tvm.target.Target(kind))
    return make_task(workload, "evil", target, workload_text(workload), [((4,), "int32")] * 2)


@pytest.mark.slow
@needs_tvm
def test_a_workload_that_calls_system_is_not_built(tmp_path: Path) -> None:
    from graphnet_datasets.tuning.measure import LiveMeasurer, TimingPlan

    mark = tmp_path / "mark"
    task = task_that_runs(f"touch {mark}")
    with pytest.raises(UnverifiedProgramError):
        verify_workload(task.workload_json)
    candidate = Candidate(task.task_id, "[[],[]]", Origin.RANDOM)
    plan = TimingPlan(repeat=2, min_repeat_ms=0, warmup=0)
    with LiveMeasurer([task], plan=plan) as measurer:
        (row,) = measurer.measure([candidate])
    assert row.status is TrialStatus.RUN_FAILED
    assert "--trust-remote-code" in row.error
    assert not mark.exists()


@needs_tvm
def test_loading_verifies_unless_the_caller_trusts(tmp_path: Path, workloads: list[str]) -> None:
    from graphnet_datasets.tuning.extract import load_target, load_workload, replay
    from graphnet_datasets.tuning.space import TvmSpace

    task = task_that_runs(f"touch {tmp_path / 'mark'}")
    with pytest.raises(UnverifiedProgramError):
        load_workload(task.workload_json)
    with pytest.raises(UntrustedCodeError):
        TvmSpace().add(task)
    assert load_workload(task.workload_json, trust_remote_code=True)["main"]
    with pytest.raises(UnverifiedProgramError):
        load_target('{"kind": "c"}')
    workload = load_workload(workloads[0])
    begin = ["GetSBlock", [], ["root", "main"], ["b0"]]
    text = json.dumps([[begin, ["Annotate", ["b0", '"; LLVM"'], ["pragma_import_llvm"], []]], []])
    with pytest.raises(UnverifiedProgramError, match="pragma_import_llvm"):
        replay(workload, text)
    assert "pragma_import_llvm" in str(replay(workload, text, trust_remote_code=True).mod)


@needs_tvm
def test_a_block_with_undeclared_reads_is_refused(workloads: list[str]) -> None:
    from graphnet_datasets.tuning.extract import load_workload

    def edit(nodes: list[dict[str, Any]]) -> None:
        zero = next(
            i for i, node in enumerate(nodes)
            if node["type"] == "ir.IntImm" and nodes[node["data"]["value"]]["data"] == 0
        )  # fmt: skip
        for node in nodes:
            if node["type"] == "ir.TensorRegion":
                for index in nodes[node["data"]["region"]]["data"]:
                    if nodes[nodes[index]["data"]["min"]]["type"] == "ir.Var":
                        nodes[index]["data"]["min"] = zero
                        return

    text = next(text for text in workloads if '"ir.TensorRegion"' in text)
    with pytest.raises(UnverifiedProgramError, match="uses undeclared regions"):
        load_workload(edited(text, edit))


@pytest.mark.slow
@needs_tvm
def test_mutations_that_pass_do_not_kill_tvm() -> None:
    command = [sys.executable, "-m", "tests.tuning.fuzzing_programs", "--count", "250"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    counts = json.loads(done.stdout)
    assert counts["refused"] > 100
    assert counts["loaded"] >= 1
