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
    """Compile a sample by TorchInductor and return what it generated.

    The sample's operators are marked and compiled as they stand, without a capture by dynamo.

    Raises:
        TransformError: TorchInductor cannot compile the sample.
        CompilerError: it has no such option.
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
        except Exception as error:  # whatever a compiler raises
            failure = error
    if failure is not None:
        raise compile_error(sample, failure) from failure
    kernels: list[GeneratedKernel] = []
    library: list[str] = []
    for text, nodes in texts:
        written, calls = read_wrapper(text)
        library += calls
        kernels += [_kernel(each, nodes, positions, sample) for each in written]
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
    """Return a kernel with the operators of the sample that its traced nodes belong to."""
    names = [
        name
        for kernel, found in nodes.items()
        if kernel.rpartition(":")[0] == written.entry
        for name in found
    ]
    known = [position for name in names if (position := positions.get(name)) is not None]
    ops = tuple(sorted(set(known)))
    launch = {"types": list(written.types), "calls": list(written.calls)}
    return GeneratedKernel(
        written.entry,
        written.language,
        written.source,
        tuple(sample.ops[position].target for position in ops),
        ops if len(known) == len(names) and ops else None,
        json.loads(json.dumps(launch)),
    )
