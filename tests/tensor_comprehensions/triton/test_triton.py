"""Triton: values in Triton's interpreter, compilation for a GPU that is absent, and the text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.tc import paper
from graphnet_datasets.errors import KernelCompileError, TensorComprehensionError
from graphnet_datasets.tensor_comprehensions import register_function
from graphnet_datasets.tensor_comprehensions.options import Options
from graphnet_datasets.tensor_comprehensions.triton import (
    TritonProgram,
    compile_triton,
    load_functions,
    write_triton,
)
from graphnet_datasets.tensor_comprehensions.tuner.space import triton_space_of

from ..kernels import instance_of
from .cases import CASES, PAPER, PRODUCT

pytest.importorskip("islpy", reason="needs islpy (extra tc)")
pytest.importorskip("triton", reason="needs triton (extra kernels)")

ROOT = Path(__file__).parents[3]
QUICK = ("sum in place, split", "product, split", "guard by data", "signed division")


def interpreted(*names: str) -> dict[str, dict[str, Any]]:
    """Return the results of cases in Triton's interpreter, which needs a process of its own."""
    module = "tests.tensor_comprehensions.triton.interpreting"
    result = subprocess.run(
        [sys.executable, "-m", module, *names],
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    lines = map(json.loads, result.stdout.splitlines())
    return {line["name"]: line for line in lines}


@pytest.fixture(scope="module")
def results() -> dict[str, dict[str, Any]]:
    return interpreted()


def assert_right(name: str, line: dict[str, Any]) -> None:
    assert "error" not in line, line["error"]
    assert line["difference"] <= CASES[name].tolerance


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_values_agree_with_the_interpreter(name: str, results: dict[str, dict[str, Any]]) -> None:
    assert_right(name, results[name])


@pytest.mark.slow
def test_a_few_values_agree_with_the_interpreter() -> None:
    for name, line in interpreted(*QUICK).items():
        assert_right(name, line)


def assembly(program: TritonProgram) -> list[str]:
    """Compile a program for an H100 and return the PTX of each launch."""
    from triton.backends.compiler import GPUTarget

    target = GPUTarget("cuda", 90, 32)
    kernels = compile_triton(program.source, program.launches, program.types, target)
    return [kernel.asm["ptx"] for kernel in kernels]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_case_compiles_for_an_h100(name: str) -> None:
    instance, _, _ = CASES[name].make()
    program = write_triton(instance, CASES[name].options)
    texts = assembly(program)
    assert len(texts) == len(program.launches)
    if "product in bfloat16" in name or "in float16" in name:
        assert "mma.sync" in texts[0] or "wgmma" in texts[0]


@pytest.mark.slow
@pytest.mark.parametrize("kernel", paper.kernels(), ids=lambda kernel: kernel.label)
def test_the_paper_compiles_at_its_sizes_in_float32_and_bfloat16(
    kernel: paper.PaperKernel,
) -> None:
    for dtype in ("float", "bfloat16"):
        source = paper.in_dtype(kernel.source, dtype)
        program = write_triton(instance_of(source, *kernel.shapes))
        texts = assembly(program)
        for launch, text in zip(program.launches, texts, strict=True):
            body = program.source.partition(f"def {launch.name}(")[2].partition("@triton")[0]
            if dtype == "bfloat16" and "tl.dot" in body:
                assert "mma.sync" in text or "wgmma" in text


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_large_products_of_16_bits_use_the_tensor_cores_of_warp_groups(dtype: str) -> None:
    program = write_triton(instance_of(PRODUCT.format(dtype), (4096, 4096), (4096, 4096)))
    (text,) = assembly(program)
    assert "wgmma.mma_async" in text
    assert "input_precision" not in program.source


def test_products_of_float32_are_exact_unless_tf32_is_asked_for() -> None:
    instance = instance_of(paper.TMM, (256, 64), (256, 64))
    program = write_triton(instance)
    assert 'input_precision="ieee"' in program.source
    options = Options().with_triton(input_precision="tf32")
    assert 'input_precision="tf32"' in write_triton(instance, options).source


def test_a_bias_and_an_activation_are_applied_to_the_tile_of_a_product() -> None:
    program = write_triton(instance_of(paper.MLP1, (512, 64), (64, 512), (512,)))
    assert len(program.launches) == 1
    assert "tl.maximum" in program.source.partition("tl.dot")[2]
    assert program.source.count("tl.store") == 1


def test_few_tiles_share_their_terms_among_programs() -> None:
    instance = instance_of(paper.TMM, (64, 4096), (64, 4096))
    first, second = write_triton(instance).launches
    assert first.grid[1] > 1
    assert (second.name, second.grid[1]) == ("tc_kernel_0_finish", 1)
    options = Options().with_triton(split=1)
    assert len(write_triton(instance, options).launches) == 1


def test_a_guarded_product_is_multiplied_where_its_guard_is_constant() -> None:
    shapes = next(kernel.shapes for kernel in paper.kernels() if kernel.label == "WaveNet d32")
    source = write_triton(instance_of(paper.WAVENET, *shapes)).source
    # Filter and gate: one product before the first dilated term, two after it; then two more.
    assert source.count("tl.dot") == 8


def test_blocks_are_those_of_the_options() -> None:
    options = Options().with_triton(product=(32, 64, 16), num_warps=2, num_stages=4, split=1)
    instance = instance_of(paper.TMM, (256, 64), (256, 64))
    (launch,) = write_triton(instance, options).launches
    assert (launch.grid, launch.num_warps, launch.num_stages) == ((32, 1), 2, 4)


def test_empty_results_need_no_launch() -> None:
    instance, _, _ = CASES["size 0"].make()
    assert write_triton(instance).launches == ()


def test_registered_functions_are_refused() -> None:
    register_function("tc_softsign", 1, "x0 / (1 + fabs(x0))", replace=True)
    instance = instance_of("def f(float(N) A) -> (O) { O(i) = tc_softsign(A(i)) }", (4,))
    expected = (
        "The function `tc_softsign` was registered with expressions in C and CUDA, which Triton "
        'cannot call. Use built-in functions, or compile with `Options(gpu="nvrtc")`.'
    )
    with pytest.raises(TensorComprehensionError) as error:
        write_triton(instance)
    assert str(error.value) == expected


@pytest.mark.parametrize(
    ("source", "shapes"),
    [
        ("def f(float(N) A) -> (S) { S(i) = S(i-1) + A(i) where i in 0:N }", [(8,)]),
        ("def f(float(N) A, int32(N) I) -> (float(4) O) { O(I(i)) +=! A(i) }", [(8,), (8,)]),
    ],
)
def test_scans_and_scatters_are_refused(source: str, shapes: list[tuple[int, ...]]) -> None:
    with pytest.raises(TensorComprehensionError, match="is a scan or a scatter"):
        write_triton(instance_of(source, *shapes))


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("import os\n", "other imports"),
        ("{prelude}x = 1\n", "the statement `x = 1`"),
        ("{prelude}@print\ndef tc(a):\n    pass\n", "the head of `tc`"),
        ("{prelude}@triton.jit\ndef tc(a=f()):\n    pass\n", "the head of `tc`"),
        ("{prelude}@triton.jit\ndef tc(a: f()):\n    pass\n", "the head of `tc`"),
        ("{prelude}@triton.jit\ndef tc(a):\n    import os\n", "`import os`"),
        ("{prelude}@triton.jit\ndef tc(a):\n    a.__class__\n", "`a.__class__`"),
    ],
)
def test_text_that_the_generator_never_writes_is_not_executed(text: str, content: str) -> None:
    from graphnet_datasets.tensor_comprehensions.triton.program import PRELUDE

    with pytest.raises(KernelCompileError) as error:
        load_functions(text.format(prelude=PRELUDE))
    assert f"contains {content}, which the generator never writes" in str(error.value)


def test_comments_of_a_definition_stay_comments() -> None:
    source = write_triton(instance_of(paper.MLP1, (5, 9), (9, 7), (7,))).source
    assert set(load_functions(source)) == {"tc_kernel_0"}
    assert "\n    # " in source


def test_the_space_changes_options_of_triton() -> None:
    import random

    space = triton_space_of(instance_of(paper.MLP1, (5, 9), (9, 7), (7,)))
    names = {name for name, _ in space.parameters}
    assert {"triton.product", "triton.split", "triton.num_stages", "intra_fusion"} <= names
    generator = random.Random(0)  # noqa: S311 (a choice of options, no secret)
    drawn = [space.draw(generator, Options()) for _ in range(20)]
    assert {options.gpu for options in drawn} == {"triton"}
    assert len({options.triton.product for options in drawn}) > 5
    child = space.cross(generator, drawn)
    assert child.triton.product in {options.triton.product for options in drawn}
    assert Options.from_dict(child.to_dict()) == child
    assert space.mutate(generator, child, 1.0) != child
    assert set(PAPER) <= set(CASES)
