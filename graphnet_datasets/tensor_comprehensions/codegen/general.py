"""C source whose numbers are parameters, so that one kernel serves many sizes.

Extents, strides and other numbers that depend on sizes are read from an array that the caller
passes after the tensors. Instances of a definition at different sizes then have the same source,
unless their structure differs: an extent of 1, for example, may decide a condition. The code has
plain loops in the order of the statements, and threads share the outermost loops.
"""

from __future__ import annotations

import ctypes

from ..language.affine import Affine
from ..language.expressions import Constant, Expression
from ..language.instance import Instance
from ..polyhedral.domains import index_names, statement_name
from ..polyhedral.schedule import Loop, Nested, Schedule, StatementSchedule
from .c_types import c_number, c_type
from .elements import Element, Nest, Update
from .functions import FunctionTable
from .machine import Machine
from .nests import nest_of
from .plans import Plan
from .prelude import prelude
from .printing import Piece, Printer, scalar_cast
from .program import ENTRY, Program, tensor_names
from .tile_c import TileBody
from .writer import Context, Nesting, Writer

MIN_PARALLEL_POINTS = 1 << 14
"""Threads do not pay for fewer points."""
_SMALL = 2
"""Constants up to this magnitude stay in the source."""


def write_general(instance: Instance, machine: Machine, threads: int = 2) -> Program:
    """Return the C source of an instance and the numbers to pass to it.

    With one thread, the source is the same, but it is compiled without OpenMP's library.

    >>> from ..language import check, instantiate
    >>> from .machine import this_machine
    >>> definition, = check("def f(float(N) A) -> (B) { B(i) = 2 * A(i) }")
    >>> programs = [write_general(instantiate(definition, [(n,)]), this_machine()) for n in (5, 9)]
    >>> programs[0].source == programs[1].source, programs[1].parameters
    (True, (9,))
    """
    functions = FunctionTable(machine)
    context = Context(machine, tensor_names(instance), functions)
    body = Writer(1)
    for place, tensor in enumerate(instance.tensors):
        const = "const " if tensor.role == "input" else ""
        body.line(f"{const}{c_type(tensor.dtype)} *const restrict t{place} = a[{place}];")
    body.line(f"const long *const restrict s = a[{len(instance.tensors)}];")
    parameters: list[int] = []
    for number in range(len(instance.statements)):
        with body.block(""):
            _General(nest_of(instance, number), context, body, parameters).write()
    parts = [
        prelude(machine),
        functions.text,
        f"void {ENTRY}(void *const *a, long nt) {{\n{body.text}}}\n",
    ]
    libraries = ("mvec", "m") if functions.needs_libmvec else ("m",)
    return Program("".join(parts), libraries, threads > 1, tuple(parameters))


def general_schedule(instance: Instance) -> Schedule:
    """Return the execution order of the general code, for display."""
    nests = []
    for number, statement in enumerate(instance.statements):
        names = tuple(index_names(statement))
        loops = tuple(Loop(index.name, "loop") for index in statement.indices)
        order = StatementSchedule(statement_name(number), names, "", names)
        nests.append(Nested(loops, (order,), note="general"))
    return Schedule(tuple(nests))


class _General:
    """Writes the loops of one statement."""

    def __init__(self, nest: Nest, context: Context, writer: Writer, parameters: list[int]) -> None:
        self._nest, self._context, self._writer = nest, context, writer
        self._parameters = parameters
        self._printer = _GeneralPrinter(context.functions, self)

    def number(self, value: int) -> str:
        """Return C code for a number that may differ at other sizes."""
        self._parameters.append(value)
        return f"s[{len(self._parameters) - 1}]"

    def element(self, element: Element, mask: str | None = None) -> Piece:
        """Return an element of a tensor, which is also an lvalue."""
        del mask  # only vectors have masks
        parts = [self._affine(element.offset)]
        for stride, subscript, limit in element.gathers:
            code = f"(int64_t){self._printer.print(subscript).code}"
            code = f"tc_clamp({code}, {self.number(limit)})" if limit else code
            parts.append(f"{self.number(stride)} * {code}")
        return Piece(f"{self._context.tensors[element.tensor]}[{' + '.join(parts)}]")

    def _affine(self, affine: Affine) -> str:
        # A step of 1 remains visible to the compiler, which can then use vectors.
        terms = [
            name if step == 1 else f"{self.number(step)} * {name}"
            for name, step in affine.coefficients
        ]
        if affine.constant or not terms:
            terms.append(self.number(affine.constant))
        return " + ".join(terms)

    def write(self) -> None:
        """Write all loops."""
        nest, writer = self._nest, self._writer
        extents = nest.extents
        sizes = {name: self.number(extents[name]) for name in extents}
        num_parallel = len(nest.order) - len(nest.serial)
        if num_parallel > 1 and not nest.reductions and not nest.serial:
            num_parallel -= 1  # the innermost loop stays whole, for vectors
        points = " * ".join(sizes.values())
        if num_parallel:
            writer.line(
                f'_Pragma("omp parallel for num_threads(nt) collapse({num_parallel}) '
                f'schedule(static) if({points} >= {MIN_PARALLEL_POINTS})")'
            )
        heads = [f"for (long {name} = 0; {name} < {sizes[name]}; ++{name})" for name in nest.order]
        with Nesting(heads, writer):
            for update in nest.updates:
                self._reduce(update, sizes)
            for assign in nest.epilogues:
                code = scalar_cast(self._value(assign.value), assign.type, assign.target.type)
                writer.line(f"{self.element(assign.target).code} = {code};")

    def _reduce(self, update: Update, sizes: dict[str, str]) -> None:
        nest, writer = self._nest, self._writer
        target = self.element(update.target).code
        first = c_number(update.identity, update.type)
        if update.start == "memory":
            first = scalar_cast(target, update.target.type, update.type)
        writer.line(f"{c_type(update.type)} total = {first};")
        plan = Plan("scalar", update.type, "", 1, (), nest.order)
        tile = TileBody(nest, plan, self._context, writer)
        heads = [
            f"for (long {dim.name} = 0; {dim.name} < {sizes[dim.name]}; ++{dim.name})"
            for dim in nest.reductions
        ]
        with Nesting(heads[:-1], writer):
            if update.operator in "+*" and update.type.is_float:
                writer.line(f'_Pragma("omp simd reduction({update.operator}:total)")')
            with writer.block(heads[-1]):
                value = Piece(self._value(update.value))
                writer.line(f"total = {tile.combine(update, 'total', value)};")
        writer.line(f"{target} = {scalar_cast('total', update.type, update.target.type)};")

    def _value(self, node: Expression) -> str:
        return self._printer.print(node).code


class _GeneralPrinter(Printer):
    """Prints constants that may stem from sizes as parameters."""

    def __init__(self, functions: FunctionTable, general: _General) -> None:
        super().__init__(functions, general.element, Piece)
        self._general = general

    def print(self, node: Expression) -> Piece:
        """Return the C code of an expression."""
        if isinstance(node, Constant) and _is_whole(node):
            return Piece(f"(({c_type(node.type)}){self._general.number(int(node.value))})")
        return super().print(node)


def _is_whole(node: Constant) -> bool:
    """Return whether a constant is a number that every type involved represents exactly."""
    value = node.value
    if node.type.is_bool or node.type.bits < 32 or value != value:
        return False
    limit = 1 << (24 if node.type.is_float else 31)
    return _SMALL < abs(value) < limit and value == int(value)


def parameter_array(parameters: tuple[int, ...]) -> ctypes.Array[ctypes.c_long]:
    """Return parameters as the array that generated code reads."""
    return (ctypes.c_long * max(1, len(parameters)))(*parameters)
