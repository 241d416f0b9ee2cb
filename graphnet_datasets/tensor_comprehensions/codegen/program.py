"""Complete C source files of instances."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..language.instance import Instance
from .c_types import c_type, comment
from .elements import Dim, Nest
from .functions import FunctionTable
from .loops_c import shared_loops, write_nest
from .machine import Machine
from .plans import Plan
from .prelude import prelude
from .writer import Context, Writer

ENTRY = "tc_kernel"
"""Function exported by a generated file: `void tc_kernel(void *const *tensors, long nt)`."""


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """C source and the libraries it is linked with.

    Attributes:
        parameters: numbers to pass as an array after the tensors, if there are any.
    """

    source: str
    libraries: tuple[str, ...] = ()
    uses_threads: bool = False
    parameters: tuple[int, ...] = ()


def tensor_names(instance: Instance) -> dict[str, str]:
    """Return the C names of the tensors."""
    return {tensor.name: f"t{place}" for place, tensor in enumerate(instance.tensors)}


def write_program(
    instance: Instance,
    groups: Sequence[tuple[tuple[Dim, ...], Sequence[Nest], Sequence[Plan]]],
    machine: Machine,
    threads: int,
) -> Program:
    """Return the C source of groups of nests, executed in order.

    Args:
        groups: for each group, the shared loops, the coalesced nests and their plans.
    """
    functions = FunctionTable(machine)
    names = tensor_names(instance)
    context = Context(machine, names, functions, threads)
    body = Writer(1)
    for place, tensor in enumerate(instance.tensors):
        const = "const " if tensor.role == "input" else ""
        kind = c_type(tensor.dtype)
        shape = "x".join(map(str, tensor.shape)) or "scalar"
        body.line(
            f"{const}{kind} *const restrict t{place} = a[{place}];  "
            f"{comment(f'{tensor.name}: {shape} {tensor.role}')}"
        )
    for dims, nests, plans in groups:
        for nest in nests:
            for number in nest.statements:
                body.line(comment(instance.statements[number].text))
        with shared_loops(dims, threads, body):
            for nest, plan in zip(nests, plans, strict=True):
                write_nest(nest, plan, context, body)
    parts = [prelude(machine), functions.text]
    if context.buffer_bytes:
        parts.append(
            f"static _Thread_local char tc_buffer[{context.buffer_bytes}] "
            "__attribute__((aligned(64)));\n"
        )
    parts.append(f"void {ENTRY}(void *const *a, long nt) {{\n{body.text}}}\n")
    uses_threads = any(
        (dims and threads > 1) or any(plan.num_parallel for plan in plans)
        for dims, _, plans in groups
    )
    libraries = ("mvec", "m") if functions.needs_libmvec else ("m",)
    return Program("".join(parts), libraries, uses_threads)
