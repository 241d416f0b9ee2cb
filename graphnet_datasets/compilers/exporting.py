"""Export for compilers that take a `torch.export` program, with checks for unsupported graphs."""

from __future__ import annotations

import contextlib
import functools
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from ..errors import CompilerError
from .flat import FlatModule
from .options import Option

COMPLEX = (torch.complex32, torch.complex64, torch.complex128)

EXPORT_OPTIONS: Mapping[str, Option] = {
    "dynamic": Option(False, "Export with symbolic sizes wherever the graph allows them."),
}


def export_flat(
    compiler: str,
    module: Callable[..., Any],
    example_inputs: Mapping[str, Any],
    *,
    dynamic: bool,
    writes: bool = False,
) -> tuple[FlatModule, torch.export.ExportedProgram]:
    """Export `module` with positional tensors. The first item of the result rebuilds its outputs.

    Args:
        writes: Whether the caller applies the graph's writes to inputs and buffers.

    Raises:
        CompilerError: The graph writes to an input or a buffer, which the compilers would silently
            drop, or returns a number that is only known after a call.
    """
    flat = FlatModule(module, example_inputs).eval()
    arguments = flat.arguments(example_inputs)
    shapes = None
    if dynamic:
        auto = torch.export.Dim.AUTO
        shapes = {
            "tensors": tuple(dict.fromkeys(range(tensor.dim()), auto) for tensor in arguments)
        }
    with quiet_copies():
        program = torch.export.export(flat, arguments, dynamic_shapes=shapes, strict=False)
    if flat.written and not writes:
        raise CompilerError(
            f"The graph writes to its input or buffer `{flat.written[0]}`, which `{compiler}` does "
            "not support. Choose another compiler for this graph."
        )
    if flat.symbols:
        raise CompilerError(
            f"The graph returns the number `{flat.symbols[0]}`, which depends on data or sizes, "
            f"but programs of `{compiler}` return only tensors. Choose another compiler for this "
            "graph."
        )
    flat.fixed_inputs |= dict(zip(flat.tensor_names, _fixed_sizes(program), strict=True))
    spell_out_sums(program.graph_module)
    return flat, program


def check_dtypes(
    compiler: str, flat: FlatModule, example_inputs: Mapping[str, Any], *refused: torch.dtype
) -> None:
    """Reject inputs and outputs of dtypes that a compiler's runtime does not support.

    Raises:
        CompilerError: An input or output has such a dtype.
    """
    tensors = flat.arguments(example_inputs)
    for dtype in (*(tensor.dtype for tensor in tensors), *flat.dtypes):
        if dtype in refused:
            raise CompilerError(
                f"The graph takes or returns a tensor of {dtype}, which `{compiler}` does not "
                "support. Cast the graph to another dtype first."
            )


def _fixed_sizes(program: torch.export.ExportedProgram) -> list[tuple[int | None, ...]]:
    """Return the sizes of each tensor argument, with None for symbolic sizes."""
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    return [
        tuple(
            size if type(size) is int else None
            for size in getattr(nodes[str(name)].meta["val"], "shape", ())
        )
        for name in program.graph_signature.user_inputs
    ]


@contextlib.contextmanager
def quiet_copies() -> Iterator[None]:
    """Suppress the warnings that exports in torch 2.13 cause by copying tree specifications."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def spell_out_sums(module: torch.fx.GraphModule) -> None:
    """Rewrite each sum of several symbolic sizes as pairwise additions, in place.

    Graphs with data-dependent sizes contain such sums, and most compilers do not support
    `torch.sym_sum`.
    """
    for node in list(module.graph.nodes):
        is_output = any(user.op == "output" for user in node.users)
        if node.op != "call_function" or node.target is not torch.sym_sum or is_output:
            continue
        with module.graph.inserting_before(node):
            node.replace_all_uses_with(functools.reduce(_add, node.args[0]))
        module.graph.erase_node(node)
    module.recompile()


def _add(left: Any, right: Any) -> Any:
    """Return a node that adds two sizes, or their sum if neither is symbolic."""
    nodes = [term for term in (left, right) if isinstance(term, torch.fx.Node)]
    if not nodes:
        return left + right
    added = nodes[0].graph.call_function(operator.add, (left, right))
    added.meta["val"] = sum(
        term.meta["val"] if isinstance(term, torch.fx.Node) else term for term in (left, right)
    )
    return added


def input_positions(program: torch.export.ExportedProgram) -> dict[str, int]:
    """Map the name of each tensor argument in the exported program to its position."""
    names = program.graph_signature.user_inputs
    return {str(name): position for position, name in enumerate(names)}


def threads(requested: int) -> int:
    """Return the requested number of threads of a runtime, or torch's number if it is 0."""
    return requested or torch.get_num_threads()


def check_count(compiler: str, flat: FlatModule, num_outputs: int) -> None:
    """Check that compilation preserved the number of outputs.

    Raises:
        CompilerError: The numbers differ.
    """
    if num_outputs != flat.num_tensors:
        raise CompilerError(
            f"The program of `{compiler}` has {num_outputs} outputs, but the graph has "
            f"{flat.num_tensors}."
        )
