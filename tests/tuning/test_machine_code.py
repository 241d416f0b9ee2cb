"""Features of machine code: instruction classes, loops and the hot loop of assembly texts."""

from __future__ import annotations

import numpy as np
import pytest

from graphnet_datasets.errors import TuningError
from graphnet_datasets.tuning import machine_code
from graphnet_datasets.tuning.machine_code import (
    CLASSES,
    FEATURE_NAMES,
    MACHINE_CODE_SET,
    machine_code_features,
)

NEST = """
main_compute_:
    movq %rsp, %rbp
    xorl %ecx, %ecx
.LBB0_1:
    vxorps %xmm0, %xmm0, %xmm0
    xorl %eax, %eax
.LBB0_2:
    vmovups (%rsi,%rax), %zmm1
    vbroadcastss (%rdi,%rcx,4), %zmm2
    vfmadd231ps %zmm1, %zmm2, %zmm0
    vfmadd231ps 64(%rsi,%rax), %zmm2, %zmm3
    vmovups %zmm1, -64(%rsp)
    addq $128, %rax
    cmpq $4096, %rax
    jne .LBB0_2
    vmovups %zmm0, (%rdx)
    incq %rcx
    cmpq $10, %rcx
    jne .LBB0_1
    retq
"""


def features(text: str) -> dict[str, float]:
    return dict(zip(FEATURE_NAMES, machine_code_features(text).tolist(), strict=True))


def test_the_innermost_loop_is_hot_and_its_instructions_are_counted_by_class() -> None:
    values = features(NEST)
    hot = {name: values[f"hot_{name}"] for name in CLASSES if values[f"hot_{name}"]}
    assert hot == {
        "fma_zmm": 2, "load_zmm": 2, "broadcast": 1, "spill_store": 1, "integer": 1, "compare": 1,
        "branch": 1,
    }  # fmt: skip
    assert (values["hot_trips"], values["hot_runs"], values["hot_depth"]) == (32, 10, 2)
    assert (values["loops"], values["inner_loops"], values["unknown_loops"]) == (2, 1, 0)
    assert values["hot_accumulators"] == 2


def test_totals_are_weighted_by_the_iterations_of_all_loops() -> None:
    values = features(NEST)
    assert values["total_fma_zmm"] == 2 * 32 * 10
    assert values["total_store_zmm"] == 10
    assert values["text_fma_zmm"] == 2
    assert values["total_flops"] == 2 * 32 * 10 * 32


@pytest.mark.parametrize(
    ("instruction", "name"),
    [
        ("vdivps %ymm0, %ymm1, %ymm2", "divide"),
        ("vaddps %xmm0, %xmm1, %xmm2", "arithmetic_xmm"),
        ("vaddss %xmm0, %xmm1, %xmm2", "arithmetic_scalar"),
        ("vfmadd213ss %xmm0, %xmm1, %xmm2", "fma_scalar"),
        ("vpermps %ymm0, %ymm1, %ymm2", "shuffle"),
        ("vcvtdq2ps %ymm0, %ymm1", "convert"),
        ("vgatherdps (%rax,%ymm1,4), %ymm0 {%k1}", "gather"),
        ("vpaddd %ymm0, %ymm1, %ymm2", "vector_integer"),
        ("leaq (%rax,%rcx), %rdx", "address"),
        ("testl %eax, %eax", "compare"),
        ("callq expf@PLT", "call"),
        ("kxnorw %k0, %k0, %k1", "mask"),
        ("movq %rax, 8(%rdi)", "store_integer"),
        ("prefetcht0 (%rax)", "prefetch"),
    ],
)
def test_classes_of_instructions(instruction: str, name: str) -> None:
    values = features(f"kernel:\n    {instruction}\n    cltq %rax\n    retq\n")
    assert values[f"text_{name}"] == 1


def test_a_loop_without_a_constant_bound_is_counted_as_unknown() -> None:
    text = "kernel:\n.L1:\n    vaddps %ymm0, %ymm1, %ymm1\n    cmpq %rax, %rcx\n    jne .L1\n"
    values = features(text)
    assert values["unknown_loops"] == 1
    assert values["hot_trips"] == machine_code.UNKNOWN_TRIPS


def test_helpers_of_tvm_are_left_out() -> None:
    helper = "__tvm_ffi_main:\n    vaddps %ymm0, %ymm1, %ymm1\n    retq\n"
    assert features(helper + NEST) == features(NEST)


@pytest.mark.parametrize(
    "text",
    ["", "# a comment\n.text\n", "label:\n", "kernel:\n    fmla v0.4s, v1.4s, v2.4s\n    ret\n"],
)
def test_a_text_without_instructions_of_the_processor_is_refused(text: str) -> None:
    with pytest.raises(TuningError, match="contains no instructions of x86-64"):
        machine_code_features(text)


def test_a_text_above_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_code, "MAX_CHARACTERS", 10)
    with pytest.raises(TuningError, match=r"has 14 characters; at most 10"):
        machine_code_features("kernel:\n  retq")


def test_any_text_has_finite_features_or_is_refused() -> None:
    random = np.random.default_rng(0)
    words = [*NEST.split(), ",", "(", ")", "$-1", "%", "jne", ":", "rep", "{1to16}", "\n", "\t"]
    for _ in range(300):
        text = "kernel:\n" + " ".join(random.choice(words, 60))
        try:
            vector = machine_code_features(text)
        except TuningError:
            continue
        assert vector.shape == (len(FEATURE_NAMES),) and vector.dtype == np.float32
        assert np.isfinite(vector).all()


def test_names_are_distinct_and_the_set_has_a_version() -> None:
    assert len(set(FEATURE_NAMES)) == len(FEATURE_NAMES)
    assert MACHINE_CODE_SET.rpartition("-")[2].isdigit()
