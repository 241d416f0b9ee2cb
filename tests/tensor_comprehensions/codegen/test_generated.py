"""What generated C looks like: tiles, packing, shared loops, splits, and no text of strangers."""

from __future__ import annotations

import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.tc import paper
from graphnet_datasets.errors import KernelCompileError
from graphnet_datasets.tensor_comprehensions.codegen import toolchain
from graphnet_datasets.tensor_comprehensions.codegen.choices import Choices
from graphnet_datasets.tensor_comprehensions.codegen.choosing import choose_plan
from graphnet_datasets.tensor_comprehensions.codegen.coalescing import coalesce
from graphnet_datasets.tensor_comprehensions.codegen.machine import Machine
from graphnet_datasets.tensor_comprehensions.codegen.nests import gather_nests
from graphnet_datasets.tensor_comprehensions.codegen.splitting import split
from graphnet_datasets.tensor_comprehensions.compiling import compile_instance, generate
from graphnet_datasets.tensor_comprehensions.options import Options

from ..kernels import assert_right, inputs_of, instance_of

pytest.importorskip("islpy", reason="needs islpy (extra tc)")

from graphnet_datasets.tensor_comprehensions.polyhedral.picture import to_svg

AVX512 = Machine("x86_64", "avx512", 64, 32)
AVX2 = Machine("x86_64", "avx2", 32, 16)
PLAIN = Machine("riscv64", "baseline", 16, 16)


def test_a_bias_and_an_activation_are_applied_in_registers() -> None:
    instance = instance_of(paper.MLP1, (128, 2000), (2000, 128), (128,))
    (nest,) = gather_nests(instance, [(0, 1, 2)])
    assert nest.statements == (0, 1, 2)
    assert (len(nest.updates), len(nest.epilogues)) == (1, 2)
    plan = choose_plan(coalesce(nest).nest, AVX512, Choices(threads=2))
    assert (plan.mode, plan.vector, plan.k_block) == ("tile", "d1", 500)
    assert plan.packed is not None


def test_two_sums_of_one_input_are_one_pass() -> None:
    instance = instance_of(paper.MOMENTS, (16, 300))
    (nest,) = gather_nests(instance, [(0, 1, 2, 3)])
    assert (len(nest.updates), len(nest.epilogues)) == (2, 2)
    assert choose_plan(coalesce(nest).nest, AVX512, Choices(threads=1)).mode == "lanes"


@pytest.mark.parametrize("machine", [AVX512, AVX2])
def test_register_tiles_fit_into_the_registers(machine: Machine) -> None:
    for kernel in paper.kernels():
        instance = instance_of(kernel.source, *kernel.shapes)
        for nest in gather_nests(instance, [range(len(instance.statements))]):
            for piece in split(nest):
                plan = choose_plan(coalesce(piece).nest, machine, Choices(threads=2))
                rows = 1
                for _, size in plan.rows:
                    rows *= size
                used = rows * plan.num_vectors * max(1, len(nest.updates))
                assert used < machine.num_registers, kernel.label


def test_a_guard_splits_the_range_and_disappears() -> None:
    source = "def f(float(N) A) -> (B) { B(t) = t >= 5 ? A(t - 5) : 0.0 where t in 0:N }"
    instance = instance_of(source, (64,))
    pieces = split(gather_nests(instance, [(0,)])[0])
    assert [dict(each.begins)["d0"] for each in pieces] == [0, 5]
    code = generate(instance, Options(threads=1)).program.source
    body = code[code.index("void tc_kernel") :]
    assert "?" not in body
    assert "select" not in body


def test_a_norm_shares_the_loop_over_rows() -> None:
    instance = instance_of(paper.LAYER_NORM, (512, 2048), (2048,), (2048,))
    shared = generate(instance, Options(threads=2))
    apart = generate(instance, Options(threads=2).with_fusion("min", "preserve3"))
    assert len(shared.schedule.nests) == 1 < len(apart.schedule.nests)
    assert shared.schedule.nests[0].num_parallel == 1
    assert_right(instance, inputs_of(instance), Options(threads=2))


ATTENTION = """def f(float(B,T,D) Q, float(B,S,D) K, float(B,S,D) V) -> (O) {
    L(b,t,s) +=! Q(b,t,d) * K(b,s,d)
    M(b,t) max=! L(b,t,s)
    E(b,t,s) = exp(L(b,t,s) - M(b,t))
    Z(b,t) +=! E(b,t,s)
    P(b,t,s) = E(b,t,s) / Z(b,t)
    U(b,t,d) +=! P(b,t,s) * V(b,s,d)
    O(b,t,d) = U(b,t,d) }"""


def test_products_keep_their_register_tiles_when_loops_are_shared() -> None:
    """Sharing the loop over rows too would read each key once per row."""
    instance = instance_of(ATTENTION, (8, 256, 64), (8, 256, 64), (8, 256, 64))
    default = generate(instance, Options(threads=2))
    all_shared = generate(instance, Options(threads=2).with_fusion("max", "preserve3"))
    products = [plan for plan in default.plans if dict(plan.rows).get("d1", 1) > 1]
    assert len(products) == 2
    assert len(all_shared.schedule.nests) == 1 < len(default.schedule.nests)
    assert not any("d1" in dict(plan.rows) for plan in all_shared.plans)
    small = instance_of(ATTENTION, (4, 40, 24), (4, 40, 24), (4, 40, 24))
    for options in (Options(threads=2), Options(threads=2).with_fusion("max", "preserve3")):
        assert_right(small, inputs_of(small), options, tolerance=2e-5)


@pytest.mark.parametrize("machine", [AVX2, PLAIN])
def test_code_for_smaller_vectors_is_right(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every machine that runs the tests has at least the vectors of one of these."""
    from graphnet_datasets.tensor_comprehensions import compiling

    monkeypatch.setattr(compiling, "this_machine", lambda: machine)
    if machine is AVX2 and "avx2" not in toolchain._processor_flags():
        pytest.skip("this processor has no AVX2")
    for source, shapes in (
        (paper.MLP1, ((13, 70), (70, 21), (21,))),
        (paper.MOMENTS, ((3, 131),)),
        (paper.TMM, ((19, 37), (23, 37))),
    ):
        instance = instance_of(source, *shapes)
        assert_right(instance, inputs_of(instance), Options(threads=1))


def test_names_of_a_definition_never_reach_the_compiler() -> None:
    names = ["system", "main", "int", "restrict", "tc_kernel", "__attribute__", "define", "t0"]
    for name in names:
        source = "def f(float(X_N) X_A) -> (X_B) { X_B(X_i) = X_A(X_i) }".replace("X", name)
        code = generate(instance_of(source, (4,)), Options(threads=1)).program.source
        stripped = re.sub(r"//[^\n]*", "", code)
        assert not re.search(rf"\b{name}_(N|A|B|i)\b", stripped)


def test_comments_cannot_end_or_continue() -> None:
    source = """def f(float(N) A) -> (B) {
        B(i) = A(i)/A(i)/ A(i) # */ \\
    }"""
    code = generate(instance_of(source, (4,)), Options(threads=1)).program.source
    for line in code[code.index("void tc_kernel") :].splitlines():
        if "//" in line:
            said = line.partition("//")[2]
            assert re.fullmatch(r"[A-Za-z0-9_ ().,=+*<>!:/-]*", said)
            assert not re.search(r"/[^ ]|[^ ]/", said)


def test_flags_are_a_closed_list() -> None:
    instance = instance_of("def f(float(N) A) -> (B) { B(i) = A(i) }", (4,))
    with pytest.raises(KernelCompileError, match="is not allowed"):
        compile_instance(instance, Options(extra_flags=("-fplugin=evil.so",)))


def test_limits_of_compiling_hold() -> None:
    instance = instance_of(paper.MLP3, (3, 128), (64, 128), (64,), (32, 64), (32,), (2, 32), (2,))
    with pytest.raises(KernelCompileError, match="timeout"):
        compile_instance(instance, Options(extra_flags=("-O1",)), timeout_s=0.001)


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    toolchain.compiler_identity.cache_clear()
    monkeypatch.setattr(toolchain.shutil, "which", lambda _: None)
    instance = instance_of("def f(float(N) A) -> (B) { B(i) = A(i) }", (4,))
    with pytest.raises(KernelCompileError, match="`clang` is not installed"):
        compile_instance(instance, Options(compiler="clang"))
    toolchain.compiler_identity.cache_clear()


def test_a_directory_that_others_write_is_refused(
    tmp_path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "graphnet_datasets" / "tensor_comprehensions"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with pytest.raises(KernelCompileError, match="to which other users can write"):
        toolchain.object_directory()


def test_objects_that_were_not_used_for_long_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = toolchain.object_directory()
    for number in range(8):
        path = folder / f"{number}.so"
        path.write_bytes(bytes(100_000))
        os.utime(path, (number, number))
    (folder / "notes.txt").write_bytes(bytes(10_000))
    assert toolchain.prune_objects(800_000) == 0
    source = "def f(float(N) A) -> (B) { B(i) = A(i) * 0.123 }"
    kernel = compile_instance(instance_of(source, (4,)))
    os.utime(kernel.path, (0, 0))
    compile_instance(instance_of(source, (4,)))
    assert kernel.path.stat().st_mtime > 8, "a use is not noted"
    assert toolchain.prune_objects(700_000) == 3
    names = {path.name for path in folder.iterdir()}
    assert names >= {kernel.path.name, "notes.txt", "3.so", "7.so"}
    assert not names & {"0.so", "1.so", "2.so"}


def test_the_picture_is_drawn() -> None:
    made = generate(instance_of(paper.TMM, (64, 64), (64, 64)), Options(threads=1))
    root = ElementTree.fromstring(to_svg(made.schedule))  # noqa: S314 (our own text)
    words = [each.text for each in root.iter() if each.text]
    assert any("tile: d1 by" in each for each in words)
    assert "S0[i0, i1, i2]" in words
