"""Specialise a checked definition to sizes: bind sizes, infer ranges, place tensors."""

from __future__ import annotations

import dataclasses
import itertools
import math
import warnings
from collections.abc import Mapping, Sequence

from ...errors import KernelInputError, RangeInferenceError
from .affine import Affine
from .checked import CheckedDefinition, Parameter, Statement, Variable
from .instance import Instance, InstanceStatement, Precondition, Range, Tensor
from .limits import MAX_ELEMENTS, MAX_POINTS
from .linear import Linear, Sizes
from .lowering import Lowering
from .printing import canonical_text
from .ranges import Bound, Bounds, Solver
from .spans import failure

_MAX_SIZE = (1 << 31) - 1


class PreconditionWarning(UserWarning):
    """A definition demands something of sizes or values that is not checked."""


@dataclasses.dataclass(frozen=True, slots=True)
class Inference:
    """What range inference found.

    Attributes:
        instance: the definition at these sizes.
        ranges: per statement and index the range as text in the names of the sizes.
        symbolic_shapes: per output and temporary the sizes as text.
    """

    instance: Instance
    ranges: tuple[tuple[tuple[str, str], ...], ...]
    symbolic_shapes: tuple[tuple[str, tuple[str, ...]], ...]

    def __str__(self) -> str:
        lines = []
        for statement, ranges in zip(self.instance.statements, self.ranges, strict=True):
            boxes = statement.box
            lines.append(f"{statement.text}")
            for name, text in ranges:
                number = f"{boxes[name][0]}:{boxes[name][1]}" if name in boxes else ""
                lines.append(f"    {name} in {text}" + (f"  = {number}" if number else ""))
        for name, sizes in self.symbolic_shapes:
            tensor = self.instance.tensor(name)
            origin = f", origin {tensor.origin}" if any(tensor.origin) else ""
            lines.append(f"{tensor.dtype} {name}({', '.join(sizes)}) = {tensor.shape}{origin}")
        lines += [f"unchecked: {each.text}" for each in self.instance.preconditions]
        return "\n".join(lines)


def instantiate(
    definition: CheckedDefinition,
    shapes: Sequence[Sequence[int]],
    *,
    constants: Mapping[str, int] | None = None,
    strides: Sequence[Sequence[int] | None] | None = None,
    strict: bool = False,
    check_bounds: bool = False,
) -> Instance:
    """Return the definition at these sizes; see `infer` for the arguments and errors."""
    return infer(
        definition,
        shapes,
        constants=constants,
        strides=strides,
        strict=strict,
        check_bounds=check_bounds,
    ).instance


def infer(
    definition: CheckedDefinition,
    shapes: Sequence[Sequence[int]],
    *,
    constants: Mapping[str, int] | None = None,
    strides: Sequence[Sequence[int] | None] | None = None,
    strict: bool = False,
    check_bounds: bool = False,
) -> Inference:
    """Infer the ranges of all indices and the shapes of all outputs.

    Args:
        definition: the checked definition.
        shapes: the shape of each input in order, those in `constants` left out.
        constants: values of integral scalar inputs that are fixed; they are not inputs any more,
            and ranges and subscripts may be made of them.
        strides: in elements, of each input that does not lie row-major; None for those that do.
        strict: raise where a precondition cannot be proven, instead of a warning.
        check_bounds: limit unproven subscripts to their dimension instead of trusting them.

    Raises:
        KernelInputError: the shapes do not fit the parameters or each other.
        RangeInferenceError: a range is empty or cannot be inferred, or ranges contradict.

    Warns:
        PreconditionWarning: for every precondition.
    """
    return _Inferring(definition, constants or {}, check_bounds).run(shapes, strides, strict)


class _Inferring:
    """The state of specialising one definition."""

    def __init__(
        self, definition: CheckedDefinition, constants: Mapping[str, int], check_bounds: bool
    ) -> None:
        self.definition = definition
        self.sizes = Sizes({}, {}, dict(constants))
        self.bounds: Bounds = {}
        self.tensors: dict[str, Tensor] = {}
        self.preconditions: list[Precondition] = []
        self.check_bounds = check_bounds
        self.variables = {
            each.name: each for each in (*definition.outputs, *definition.temporaries)
        }

    def run(
        self,
        shapes: Sequence[Sequence[int]],
        strides: Sequence[Sequence[int] | None] | None,
        strict: bool,
    ) -> Inference:
        """Do all of it."""
        self.bind(shapes, strides)
        statements, ranges = [], []
        for number, statement in enumerate(self.definition.statements):
            made, texts = self.statement(number, statement)
            statements.append(made)
            ranges.append(texts)
        self.report(strict)
        ordered = [*self.inputs, *self.definition.outputs, *self.definition.temporaries]
        instance = Instance(
            self.definition.name,
            tuple(self.tensors[each.name] for each in ordered),
            tuple(statements),
            tuple(self.sizes.named.items()),
            tuple(self.preconditions),
            canonical_text(self.definition, self.sizes.constants),
        )
        symbolic = tuple(
            (name, tuple(str((each.end - each.begin).symbolic) for each in self.bounds[name]))
            for name in self.variables
        )
        return Inference(instance, tuple(ranges), symbolic)

    def bind(
        self, shapes: Sequence[Sequence[int]], strides: Sequence[Sequence[int] | None] | None
    ) -> None:
        """Bind the names of sizes to the shapes of the inputs and place the inputs."""
        constants = self.sizes.constants
        for name in constants:
            self.check_constant(name)
        inputs = [each for each in self.definition.parameters if each.name not in constants]
        self.inputs = inputs
        if len(shapes) != len(inputs):
            expected = ", ".join(each.name for each in inputs)
            raise KernelInputError(
                f"`{self.definition.name}` takes {len(inputs)} inputs ({expected}) but was given "
                f"{len(shapes)}."
            )
        for number, (parameter, given) in enumerate(zip(inputs, shapes, strict=True)):
            shape = tuple(int(each) for each in given)
            self.bind_input(parameter, shape)
            own = strides[number] if strides is not None else None
            own = tuple(int(each) for each in own) if own is not None else ()
            check_strides(parameter.name, shape, own)
            tensor = Tensor(parameter.name, parameter.type, shape, "input", strides=own)
            self.tensors[parameter.name] = tensor
        for variable in self.variables.values():
            self.declare(variable)

    def check_constant(self, name: str) -> None:
        """Raise unless a constant is the value of an integral scalar input."""
        found = [each for each in self.definition.parameters if each.name == name]
        if not found or found[0].dimensions or not found[0].type.is_integral:
            raise KernelInputError(
                f"`{name}` cannot be given as a constant: it is not a scalar integer input of "
                f"`{self.definition.name}`."
            )
        value, type_ = self.sizes.constants[name], found[0].type
        if not type_.least() <= value <= type_.greatest():
            raise KernelInputError(f"The constant `{name}` = {value} does not fit {type_}.")

    def bind_input(self, parameter: Parameter, shape: tuple[int, ...]) -> None:
        """Bind the sizes of one input."""
        name, declared = parameter.name, parameter.dimensions
        if len(shape) != len(declared):
            raise KernelInputError(
                f"The input `{name}` of `{self.definition.name}` has {len(declared)} dimensions "
                f"but was given {len(shape)}: {shape}."
            )
        for dimension, (size, value) in enumerate(zip(declared, shape, strict=True)):
            if not 0 <= value <= _MAX_SIZE:
                raise KernelInputError(f"Dimension {dimension} of `{name}` is {value}.")
            known = size if isinstance(size, int) else self.sizes.named.setdefault(size, value)
            if known != value:
                label = f"`{size}`, which is {known} already" if known != size else f"{size}"
                raise KernelInputError(
                    f"Dimension {dimension} of the input `{name}` is {value}, but has to be "
                    f"{label}."
                )
        check_elements(name, shape)
        self.sizes.tensors[name] = shape
        self.bounds[name] = tuple(
            Bound(Linear.number(0), self.symbol(size, value))
            for size, value in zip(declared, shape, strict=True)
        )

    def symbol(self, size: str | int, value: int) -> Linear:
        """Return a size as number and name."""
        return Linear(
            Affine((), value), Affine.index(size) if isinstance(size, str) else Affine((), value)
        )

    def declare(self, variable: Variable) -> None:
        """Enter the declared sizes of an output, which bound what reads it before it is written."""
        if variable.dimensions is None:
            if variable.rank == 0:
                self.bounds[variable.name] = ()
            return
        values = [
            each if isinstance(each, int) else self.sizes.named[each]
            for each in variable.dimensions
        ]
        self.sizes.tensors[variable.name] = tuple(values)
        self.bounds[variable.name] = tuple(
            Bound(Linear.number(0), self.symbol(size, value))
            for size, value in zip(variable.dimensions, values, strict=True)
        )

    def statement(
        self, number: int, statement: Statement
    ) -> tuple[InstanceStatement, tuple[tuple[str, str], ...]]:
        """Infer one statement and place what it writes."""
        known = self.bounds.get(statement.output, ())
        fallback = dict(zip(statement.subscripts, known, strict=False))
        solver = Solver(statement, self.sizes, self.bounds, fallback)
        solved = solver.run()
        self.place(statement, tuple(solved[name] for name in statement.subscripts))
        names = (*statement.subscripts, *statement.reductions)
        indices = tuple(Range(name, *solved[name].pair) for name in names)
        points = math.prod(each.extent for each in indices)
        if points > MAX_POINTS:
            raise failure(
                f"A statement would be evaluated at {points} points, more than {MAX_POINTS}.",
                statement.span,
                RangeInferenceError,
            )
        box = {name: bound.pair for name, bound in solved.items()}
        lowering = Lowering(number, box, self.sizes, self.bounds, self.check_bounds)
        value = lowering.lower(statement.value)
        for each in statement.exists:
            lowering.lower(each)
        self.preconditions += lowering.preconditions
        made = InstanceStatement(
            statement.output,
            statement.subscripts,
            statement.operator,
            statement.initialises,
            value,
            statement.type,
            indices,
            " ".join(statement.span.text.split()) if statement.span else "",
        )
        ordered = dict.fromkeys([*names, *solved])
        return made, tuple((name, str(solved[name])) for name in ordered)

    def place(self, statement: Statement, bounds: tuple[Bound, ...]) -> None:
        """Enter origin and shape of the tensor that a statement writes."""
        name = statement.output
        variable = self.variables[name]
        origin = tuple(each.begin.value for each in bounds)
        shape = tuple(each.end.value - each.begin.value for each in bounds)
        declared = self.bounds.get(name)
        if declared is not None:
            for place, (old, new) in enumerate(zip(declared, bounds, strict=True)):
                if old.pair == new.pair:
                    continue
                what = "declared" if name not in self.tensors else "written before"
                raise failure(
                    f"Dimension {place} of `{name}` is {what} as {old.pair[0]}:{old.pair[1]}, but "
                    f"this statement writes {new.pair[0]}:{new.pair[1]}. All statements that write "
                    "a tensor need the same ranges; give them with `where`.",
                    statement.span,
                    RangeInferenceError,
                )
        check_elements(name, shape)
        self.bounds[name] = declared or bounds
        self.sizes.tensors[name] = shape
        if name not in self.tensors:
            is_output = any(each.name == name for each in self.definition.outputs)
            self.tensors[name] = Tensor(
                name,
                variable.type,
                shape,
                "output" if is_output else "temporary",
                origin,
                is_updated=variable.is_updated,
            )

    def report(self, strict: bool) -> None:
        """Warn of the preconditions, or raise."""
        for each in dict.fromkeys(self.preconditions):
            state = "does not hold for these sizes" if each.is_violated else "is not checked"
            message = (
                f"`{self.definition.name}` is only right if {each.text}, which {state}. Pass "
                "`check_bounds=True` to limit the subscript."
            )
            if strict:
                raise RangeInferenceError(message)
            if not self.check_bounds:
                warnings.warn(message, PreconditionWarning, stacklevel=5)


def check_elements(name: str, shape: tuple[int, ...]) -> None:
    """Raise if a tensor is larger than any memory."""
    if math.prod(shape) > MAX_ELEMENTS:
        raise RangeInferenceError(
            f"`{name}` would have {math.prod(shape)} elements, more than {MAX_ELEMENTS}."
        )


def check_strides(name: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """Raise where strides lead outside or two elements may share a place.

    Raises:
        KernelInputError: a stride is missing or negative, or
            `stride[j] < stride[j + 1] * size[j + 1]` for dimensions longer than 1, outermost
            stride first.
    """
    if not strides and shape:
        return
    if len(strides) != len(shape):
        raise KernelInputError(
            f"The input `{name}` has {len(shape)} sizes, {len(strides)} strides."
        )
    if any(each < 0 for each in strides):
        raise KernelInputError(f"The input `{name}` has a negative stride: {strides}.")
    long = sorted(
        ((stride, size) for stride, size in zip(strides, shape, strict=True) if size > 1),
        reverse=True,
    )
    for (outer, _), (inner, size) in itertools.pairwise(long):
        if outer < inner * size:
            raise KernelInputError(
                f"The strides {strides} of the input `{name}` with shape {shape} overlap: "
                "elements share memory. Pass a contiguous copy."
            )
    if long and long[-1][0] == 0:
        raise KernelInputError(
            f"The input `{name}` has stride 0 along a dimension of {long[-1][1]}: elements share "
            "memory. Pass a contiguous copy."
        )
