"""Compilers that take a `torch.export` program: the export, and what it cannot carry."""

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
    """Export `module` with its tensors by position; the first item restores its outputs.

    Args:
        writes: whether the caller carries out what the graph writes to inputs and buffers.

    Raises:
        CompilerError: the graph writes to an input or a buffer, which the tools behind would leave
            out without a word; or it returns a number that is known after a call only.
    """
    flat = FlatModule(module, example_inputs).eval()
    arguments = flat.arguments(example_inputs)
    shapes = None
    if dynamic:
        auto = torch.export.Dim.AUTO
        shapes = {"tensors": tuple(dict.fromkeys(range(each.dim()), auto) for each in arguments)}
    with quiet_copies():
        program = torch.export.export(flat, arguments, dynamic_shapes=shapes, strict=False)
    if flat.written and not writes:
        raise CompilerError(
            f"The graph writes to `{flat.written[0]}`, which belongs to its caller; `{compiler}` "
            "has no way to express that."
        )
    if flat.symbols:
        raise CompilerError(
            f"The graph returns the number `{flat.symbols[0]}`, which data or sizes decide; the "
            f"program that `{compiler}` gets returns tensors only."
        )
    flat.fixed_inputs |= dict(zip(flat.tensor_names, _fixed_sizes(program), strict=True))
    spell_out_sums(program.graph_module)
    return flat, program


def check_dtypes(
    compiler: str, flat: FlatModule, example_inputs: Mapping[str, Any], *refused: torch.dtype
) -> None:
    """Refuse inputs and outputs of dtypes that a compiler's runtime does not take.

    Raises:
        CompilerError: there is such an input or output.
    """
    tensors = flat.arguments(example_inputs)
    for dtype in (*(tensor.dtype for tensor in tensors), *flat.dtypes):
        if dtype in refused:
            raise CompilerError(
                f"The graph takes or returns a tensor of {dtype}, which `{compiler}` does not "
                "support. Cast the graph to another dtype first."
            )


def _fixed_sizes(program: torch.export.ExportedProgram) -> list[tuple[int | None, ...]]:
    """Return the sizes of each tensor argument, with None in the place of symbolic ones."""
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
    """Hide what torch 2.13 warns of its own copying of tree specifications, as exports do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def spell_out_sums(module: torch.fx.GraphModule) -> None:
    """Write each sum of several symbolic sizes as additions of two, in place.

    Graphs with sizes that depend on data hold such sums, and most of the tools behind do not know
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
    """Return the node that adds two sizes, or their sum where neither is symbolic."""
    nodes = [each for each in (left, right) if isinstance(each, torch.fx.Node)]
    if not nodes:
        return left + right
    added = nodes[0].graph.call_function(operator.add, (left, right))
    added.meta["val"] = sum(
        each.meta["val"] if isinstance(each, torch.fx.Node) else each for each in (left, right)
    )
    return added


def input_positions(program: torch.export.ExportedProgram) -> dict[str, int]:
    """Return the position of each tensor argument by its name in the exported program."""
    names = program.graph_signature.user_inputs
    return {str(name): position for position, name in enumerate(names)}


def threads(requested: int) -> int:
    """Return the number of threads of a runtime: those asked for, or as many as torch uses."""
    return requested or torch.get_num_threads()


def check_count(compiler: str, flat: FlatModule, num_outputs: int) -> None:
    """Refuse a compiled program that lost or gained outputs on its way.

    Raises:
        CompilerError: the numbers differ.
    """
    if num_outputs != flat.num_tensors:
        raise CompilerError(
            f"The program that `{compiler}` made has {num_outputs} outputs where the graph has "
            f"{flat.num_tensors} tensors."
        )
