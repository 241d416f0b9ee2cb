"""Specialisation of a checked definition: bind sizes, infer ranges, place tensors."""

from __future__ import annotations

import dataclasses
import itertools
import math
import warnings
from collections.abc import Mapping, Sequence

from ...errors import KernelInputError, RangeInferenceError
from .affine import Affine
from .checked import CheckedDefinition, Parameter, Statement, Variable
from .expressions import Constant
from .instance import Instance, InstanceStatement, Precondition, Range, Tensor, identity_of
from .limits import MAX_ELEMENTS, MAX_POINTS
from .linear import Linear, Sizes
from .lowering import Lowering
from .printing import canonical_text
from .ranges import Bound, Bounds, Solver
from .spans import failure

_MAX_SIZE = (1 << 31) - 1


class PreconditionWarning(UserWarning):
    """A precondition on sizes or values that is not checked."""


@dataclasses.dataclass(frozen=True, slots=True)
class Inference:
    """Result of range inference.

    Attributes:
        instance: the definition at these sizes.
        ranges: for each statement and index, the range as a string of symbolic sizes.
        extents: for each output and temporary, the sizes as expressions of the named sizes.
    """

    instance: Instance
    ranges: tuple[tuple[tuple[str, str], ...], ...]
    extents: tuple[tuple[str, tuple[Affine, ...]], ...]

    @property
    def symbolic_shapes(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """For each output and temporary, the sizes as strings."""
        return tuple((name, tuple(map(str, sizes))) for name, sizes in self.extents)

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
        lines += [f"unchecked: {condition.text}" for condition in self.instance.preconditions]
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
    """Return the definition specialised to sizes; see `infer` for the arguments and errors."""
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
        shapes: shapes of the inputs in order, without those in `constants`.
        constants: values of integral scalar inputs. They are no longer inputs, and ranges and
            subscripts may depend on them.
        strides: strides in elements; None for row-major inputs.
        strict: raise instead of warn if a precondition cannot be proven.
        check_bounds: clamp unproven subscripts instead of trusting them.

    Raises:
        KernelInputError: the shapes do not match the parameters or each other.
        RangeInferenceError: a range is empty or cannot be inferred, or ranges contradict.

    Warns:
        PreconditionWarning: for each unproven precondition.
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
            variable.name: variable for variable in (*definition.outputs, *definition.temporaries)
        }

    def run(
        self,
        shapes: Sequence[Sequence[int]],
        strides: Sequence[Sequence[int] | None] | None,
        strict: bool,
    ) -> Inference:
        """Bind the inputs, infer all statements and report preconditions."""
        self.bind(shapes, strides)
        statements, ranges = [], []
        for statement in self.definition.statements:
            if statement.target is not None and statement.initialises:
                fill, texts = self.fill(statement)
                if fill is not None:
                    statements.append(fill)
                    ranges.append(texts)
            instance_statement, texts = self.statement(len(statements), statement)
            if instance_statement is not None:
                statements.append(instance_statement)
                ranges.append(texts)
        self.report(strict)
        ordered = [*self.inputs, *self.definition.outputs, *self.definition.temporaries]
        instance = Instance(
            self.definition.name,
            tuple(self.tensors[tensor.name] for tensor in ordered),
            tuple(statements),
            tuple(self.sizes.named.items()),
            tuple(self.preconditions),
            canonical_text(self.definition, self.sizes.constants),
        )
        extents = tuple(
            (name, tuple((bound.end - bound.begin).symbolic for bound in self.bounds[name]))
            for name in self.variables
        )
        return Inference(instance, tuple(ranges), extents)

    def bind(
        self, shapes: Sequence[Sequence[int]], strides: Sequence[Sequence[int] | None] | None
    ) -> None:
        """Bind the names of sizes to the shapes of the inputs, and register the inputs."""
        constants = self.sizes.constants
        for name in constants:
            self.check_constant(name)
        inputs = [
            parameter for parameter in self.definition.parameters if parameter.name not in constants
        ]
        self.inputs = inputs
        if len(shapes) != len(inputs):
            expected = ", ".join(parameter.name for parameter in inputs)
            raise KernelInputError(
                f"`{self.definition.name}` takes {len(inputs)} inputs ({expected}), got "
                f"{len(shapes)}. Pass one shape for each."
            )
        for number, (parameter, sizes) in enumerate(zip(inputs, shapes, strict=True)):
            shape = tuple(int(size) for size in sizes)
            self.bind_input(parameter, shape)
            steps = strides[number] if strides is not None else None
            steps = tuple(int(step) for step in steps) if steps is not None else ()
            check_strides(parameter.name, shape, steps)
            tensor = Tensor(parameter.name, parameter.type, shape, "input", strides=steps)
            self.tensors[parameter.name] = tensor
        for variable in self.variables.values():
            self.declare(variable)

    def check_constant(self, name: str) -> None:
        """Raise unless a constant belongs to an integral scalar input and fits its type."""
        matches = [parameter for parameter in self.definition.parameters if parameter.name == name]
        if not matches or matches[0].dimensions or not matches[0].type.is_integral:
            raise KernelInputError(
                f"`{name}` cannot be a constant: it is not a scalar integer input of "
                f"`{self.definition.name}`."
            )
        value, type_ = self.sizes.constants[name], matches[0].type
        if not type_.least() <= value <= type_.greatest():
            raise KernelInputError(f"The constant `{name}` = {value} does not fit into {type_}.")

    def bind_input(self, parameter: Parameter, shape: tuple[int, ...]) -> None:
        """Bind the sizes of one input."""
        name, declared = parameter.name, parameter.dimensions
        if len(shape) != len(declared):
            raise KernelInputError(
                f"The input `{name}` of `{self.definition.name}` has {len(declared)} dimensions "
                f"but got {len(shape)}: {shape}. Pass a tensor with the declared dimensions."
            )
        for dimension, (size, value) in enumerate(zip(declared, shape, strict=True)):
            if not 0 <= value <= _MAX_SIZE:
                raise KernelInputError(
                    f"Dimension {dimension} of `{name}` is {value}; it must be from 0 to "
                    f"{_MAX_SIZE}."
                )
            expected = size if isinstance(size, int) else self.sizes.named.setdefault(size, value)
            if expected != value:
                label = f"`{size}`, which is {expected}" if expected != size else f"{size}"
                raise KernelInputError(
                    f"Dimension {dimension} of the input `{name}` is {value}, but must be {label}."
                )
        check_elements(name, shape)
        self.sizes.tensors[name] = shape
        self.bounds[name] = tuple(
            Bound(Linear.number(0), self.symbol(size, value))
            for size, value in zip(declared, shape, strict=True)
        )

    def symbol(self, size: str | int, value: int) -> Linear:
        """Return a size as a number and a symbol."""
        return Linear(
            Affine((), value), Affine.index(size) if isinstance(size, str) else Affine((), value)
        )

    def declare(self, variable: Variable) -> None:
        """Register the declared sizes of an output, for reads that precede its first write."""
        if variable.dimensions is None:
            if variable.rank == 0:
                self.bounds[variable.name] = ()
            return
        values = [
            size if isinstance(size, int) else self.sizes.named[size]
            for size in variable.dimensions
        ]
        self.sizes.tensors[variable.name] = tuple(values)
        self.bounds[variable.name] = tuple(
            Bound(Linear.number(0), self.symbol(size, value))
            for size, value in zip(variable.dimensions, values, strict=True)
        )

    def statement(
        self, number: int, statement: Statement
    ) -> tuple[InstanceStatement | None, tuple[tuple[str, str], ...]]:
        """Infer the ranges of one statement and place its output.

        Without points, the result is the assignment of the identity, or None if the statement
        changes nothing.
        """
        declared = self.bounds.get(statement.output, ())
        fallback = {}
        if statement.target is None:
            fallback = dict(zip(statement.subscripts, declared, strict=False))
        solver = Solver(statement, self.sizes, self.bounds, fallback)
        solved = solver.run()
        if statement.target is None:
            declared = tuple(solved[name] for name in statement.subscripts)
        self.place(statement, declared)
        names = (*statement.subscripts, *statement.reductions)
        indices = tuple(Range(name, *solved[name].pair) for name in names)
        points = math.prod(index.extent for index in indices)
        if points > MAX_POINTS:
            raise failure(
                f"A statement would be evaluated at {points} points, more than {MAX_POINTS}.",
                statement.span,
                RangeInferenceError,
            )
        ordered = dict.fromkeys([*names, *solved])
        texts = tuple((name, str(solved[name])) for name in ordered)
        span = " ".join(statement.span.text.split()) if statement.span else ""
        if statement.target is not None and not self.tensors[statement.output].num_elements:
            return None, texts
        if not points:
            return self.without_points(statement, indices, span), texts
        box = {name: bound.pair for name, bound in solved.items()}
        scanned = statement.output if statement.scan is not None else ""
        lowering = Lowering(number, box, self.sizes, self.bounds, self.check_bounds, scanned)
        value = lowering.lower(statement.value)
        target = None if statement.target is None else lowering.load(statement.target, ())
        for expression in statement.exists:
            lowering.lower(expression)
        self.preconditions += lowering.preconditions
        instance_statement = InstanceStatement(
            statement.output,
            statement.subscripts,
            statement.operator,
            statement.initialises and target is None,
            value,
            statement.type,
            indices,
            span,
            target,
            statement.scan,
        )
        return instance_statement, texts

    def without_points(
        self, statement: Statement, indices: tuple[Range, ...], text: str
    ) -> InstanceStatement | None:
        """Return the effect of a reduction over nothing, or None if no element is written."""
        output_indices = indices[: len(statement.subscripts)]
        if not statement.initialises or statement.target is not None:
            return None
        return _identity(statement, output_indices, text)

    def fill(
        self, statement: Statement
    ) -> tuple[InstanceStatement | None, tuple[tuple[str, str], ...]]:
        """Return the assignment of the identity to all elements that precedes a scatter."""
        bounds = self.bounds[statement.output]
        self.place(statement, bounds)
        indices = tuple(Range(f"at{place}", *bound.pair) for place, bound in enumerate(bounds))
        texts = tuple((f"at{place}", str(bound)) for place, bound in enumerate(bounds))
        return _identity(statement, indices, f"{statement.output} before the scatter"), texts

    def place(self, statement: Statement, bounds: tuple[Bound, ...]) -> None:
        """Set the origin and shape of the tensor that a statement writes."""
        name = statement.output
        variable = self.variables[name]
        origin = tuple(bound.begin.value for bound in bounds)
        shape = tuple(bound.end.value - bound.begin.value for bound in bounds)
        declared = self.bounds.get(name)
        if declared is not None:
            for place, (old, new) in enumerate(zip(declared, bounds, strict=True)):
                if old.pair == new.pair:
                    continue
                origin_of_range = "declared" if name not in self.tensors else "already written"
                raise failure(
                    f"Dimension {place} of `{name}` is {origin_of_range} as "
                    f"{old.pair[0]}:{old.pair[1]}, but "
                    f"this statement writes {new.pair[0]}:{new.pair[1]}. All statements that write "
                    "a tensor need the same ranges; set them with `where`.",
                    statement.span,
                    RangeInferenceError,
                )
        check_elements(name, shape)
        self.bounds[name] = declared or bounds
        self.sizes.tensors[name] = shape
        if name not in self.tensors:
            is_output = any(output.name == name for output in self.definition.outputs)
            self.tensors[name] = Tensor(
                name,
                variable.type,
                shape,
                "output" if is_output else "temporary",
                origin,
                is_updated=variable.is_updated,
            )

    def report(self, strict: bool) -> None:
        """Warn about the preconditions, or raise if `strict`."""
        for condition in dict.fromkeys(self.preconditions):
            state = "does not hold for these sizes" if condition.is_violated else "is not checked"
            message = (
                f"`{self.definition.name}` is correct only if {condition.text}, which {state}. "
                "Pass "
                "`check_bounds=True` to clamp the subscript."
            )
            if strict:
                raise RangeInferenceError(message)
            if not self.check_bounds:
                warnings.warn(message, PreconditionWarning, stacklevel=5)


def _identity(
    statement: Statement, indices: tuple[Range, ...], text: str
) -> InstanceStatement | None:
    """Return the assignment of the identity at all values of indices, or None without values."""
    if not all(index.extent for index in indices):
        return None
    identity = Constant(identity_of(statement.operator, statement.type), statement.type)
    names = tuple(index.name for index in indices)
    return InstanceStatement(
        statement.output, names, "=", False, identity, statement.type, indices, text
    )


def check_elements(name: str, shape: tuple[int, ...]) -> None:
    """Raise if a tensor exceeds the limit on elements."""
    if math.prod(shape) > MAX_ELEMENTS:
        raise RangeInferenceError(
            f"`{name}` would have {math.prod(shape)} elements; at most {MAX_ELEMENTS} are "
            "allowed. Pass smaller sizes."
        )


def check_strides(name: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """Raise if strides are invalid or two elements may share memory.

    Raises:
        KernelInputError: a stride is missing or negative, or, with the outermost stride first and
            without dimensions of size 1, `stride[j] < stride[j + 1] * size[j + 1]`.
    """
    if not strides and shape:
        return
    if len(strides) != len(shape):
        raise KernelInputError(
            f"The input `{name}` has {len(shape)} sizes but {len(strides)} strides. Pass a stride "
            "for each size."
        )
    if any(stride < 0 for stride in strides):
        raise KernelInputError(
            f"The input `{name}` has a negative stride: {strides}. Pass a contiguous copy."
        )
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
