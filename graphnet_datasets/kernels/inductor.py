"""Kernels of TorchInductor: C++ on a CPU, Triton on a GPU."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any
from unittest import mock

import torch

from ..compilers.inductor import Inductor
from ..frameworks.torch.fusion import compile_error, fresh_caches, mark, operator_of
from ..sample import Sample
from .generated import GeneratedKernel, Generation
from .wrapper_text import WrittenKernel, read_wrapper


def generate(sample: Sample, options: Mapping[str, Any], device: str) -> Generation:
    """Compile a sample with TorchInductor and collect the generated kernels.

    The sample's operators are marked and compiled directly, without capture by Dynamo.

    Raises:
        TransformError: TorchInductor cannot compile the sample.
        CompilerError: TorchInductor has no such option.
        UnknownOperatorError, MemoryLimitError, MaterializeError: as `materialize`.
    """
    from torch._inductor.compile_fx import compile_fx
    from torch._inductor.graph import GraphLowering

    module, tensors = mark(sample, device=device, allow_unchecked_operators=True)
    texts: list[tuple[str, dict[str, list[str]]]] = []
    positions: dict[str, int | None] = {}

    def keep_text(text: str) -> None:
        from torch._inductor import debug

        texts.append((text, dict(debug._inductor_triton_kernel_to_post_grad_node_info)))

    def keep_nodes(graph: torch.fx.Graph) -> None:
        positions.update((node.name, operator_of(node)) for node in graph.nodes)

    patches = {
        **Inductor(options).config,
        "force_disable_caches": True,
        "post_grad_custom_post_pass": keep_nodes,
        "trace.provenance_tracking_level": 1,
    }
    failure: Exception | None = None
    compiled: Any = None
    with torch.no_grad(), fresh_caches():
        try:
            with mock.patch.object(GraphLowering, "save_output_code", keep_text):
                compiled = compile_fx(module, list(tensors), config_patches=patches)
        except Exception as error:  # a compiler may raise any error
            failure = error
    if failure is not None:
        raise compile_error(sample, failure) from failure
    kernels: list[GeneratedKernel] = []
    library: list[str] = []
    for text, nodes in texts:
        written, calls = read_wrapper(text)
        library += calls
        kernels += [_kernel(kernel, nodes, positions, sample) for kernel in written]
    return Generation(tuple(kernels), tuple(library), functools.partial(_run, compiled, tensors))


def _run(compiled: Any, tensors: Sequence[torch.Tensor]) -> Any:
    with torch.no_grad():
        return compiled(*tensors)


def _kernel(
    written: WrittenKernel,
    nodes: Mapping[str, Sequence[str]],
    positions: Mapping[str, int | None],
    sample: Sample,
) -> GeneratedKernel:
    """Return a kernel with the sample's operators to which its traced nodes belong."""
    names = [
        name
        for kernel, node_names in nodes.items()
        if kernel.rpartition(":")[0] == written.entry
        for name in node_names
    ]
    known_positions = [position for name in names if (position := positions.get(name)) is not None]
    ops = tuple(sorted(set(known_positions)))
    launch = {"types": list(written.types), "calls": list(written.calls)}
    return GeneratedKernel(
        written.entry,
        written.language,
        written.source,
        tuple(sample.ops[position].target for position in ops),
        ops if len(known_positions) == len(names) and ops else None,
        json.loads(json.dumps(launch)),
    )
