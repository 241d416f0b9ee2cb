"""From a sample of torch to one of paddle, operator by operator, through the table of rules."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...analysis.effects import classify, memory_classes
from ...errors import SampleError, TranslationError, raises_only
from ...frameworks.torch.operators.table import lookup
from ...sample import Input, Op, Sample, Value
from ...sample.arguments import Arg, DictArg, ListArg, Ref, SliceArg, iterate_refs
from . import (  # noqa: F401 - importing them fills the table
    convolutions,
    creation,
    elementwise,
    indexing,
    layout,
    linear,
    networks,
    recurrent,
    reductions,
)
from .handles import Number, RefusedError, Tensor
from .registry import does_not_take, find_rule
from .writer import Writer, plain

_KINDS = {"bool": bool, "int64": int, "float64": float}


@raises_only(TranslationError)
def translate(sample: Sample) -> Sample:
    """Return a sample of paddle that computes what a sample of torch computes.

    Inputs keep their order, roles, names, statistics and stored elements, and the sample its id, so
    that the same seed draws the same numbers for both. Each operator is written anew by the rule of
    its name (`RULES`), with the shapes and dtypes that the torch sample records; where it records
    none they are propagated, which needs torch. In-place operators become ordinary ones.

    Raises:
        TranslationError: an operator has no rule, or its rule refuses the call: it draws random
            numbers, normalizes by the batch, has an argument that paddle does not express. The
            message names the operator and its position.
        SampleError: it is not a sample of torch.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input, Op, Sample, Value
    >>> tensor = Value("float32", (2,))
    >>> sample = Sample("example/double", "torch", "other", (Input("input", tensor),),
    ...     (Op("torch.Tensor.mul", (Ref(0), 2), results=(tensor,)),), Ref(1))
    >>> [op.target for op in translate(sample).ops]
    ['paddle._C_ops.scale']
    """
    if sample.framework != "torch":
        raise SampleError(
            f"`{sample.id}` is a sample of {sample.framework}; only samples of torch can be "
            "translated."
        )
    return _Translation(sample).run()


class _Translation:
    """The state of one translation: what each value of the torch sample has become."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.writer = Writer(len(sample.inputs), _symbols(sample))
        self.handles: list[Any] = [
            _input_handle(sample, index) for index in range(len(sample.inputs))
        ]
        self.results = _results(sample)
        self.memory = memory_classes(sample)
        self.stale: set[int] = set()

    def run(self) -> Sample:
        """Translate every operator and return the sample."""
        sample, num_inputs = self.sample, len(self.sample.inputs)
        for position, op in enumerate(sample.ops):
            try:
                handle = self._translate(op, self.results[position], num_inputs + position)
            except RefusedError as error:
                raise TranslationError(
                    f"Op {position} (`{op.target}`) of `{sample.id}` cannot be translated to "
                    f"paddle: {error}."
                ) from error
            self.handles.append(handle)
        try:
            outputs = plain(self._resolved(sample.outputs))
        except RefusedError as error:
            raise TranslationError(
                f"The outputs of `{sample.id}` cannot be translated to paddle: {error}."
            ) from error
        provenance = dataclasses.replace(
            sample.provenance, capture="translation", framework_version="", parent_id=sample.id
        )
        return dataclasses.replace(
            sample,
            framework="paddle",
            inputs=tuple(map(_without_stride, sample.inputs)),
            ops=tuple(self.writer.ops),
            outputs=outputs,
            provenance=provenance,
        )

    def _translate(self, op: Op, results: tuple[Value, ...], own: int) -> Any:
        target = lookup(op.target).name
        found = find_rule(target)
        if found is None:
            raise RefusedError("there is no rule for it")
        rule, is_inplace = found
        args = tuple(self._resolved(arg) for arg in op.args)
        kwargs = {name: self._resolved(arg) for name, arg in op.kwargs}
        if kwargs.pop("out", None) is not None:
            raise RefusedError("it writes into a tensor that it is given (`out`)")
        for spelling, name in (("axis", "dim"), ("keepdims", "keepdim")):
            if spelling in kwargs:  # NumPy's names, which torch takes as well
                kwargs[name] = kwargs.pop(spelling)
        if problem := does_not_take(rule, args, kwargs):
            raise RefusedError(f"its rule takes other arguments ({problem})")
        writer = self.writer
        writer.target, writer.module, writer.result = target.rstrip("_"), op.module, results
        handle = _checked(rule(writer, *args, **kwargs), results, writer)
        if is_inplace or "w" in classify("torch", op):
            self._rebind(op, handle, own)
        return handle

    def _rebind(self, op: Op, handle: Any, own: int) -> None:
        """Let what an operator wrote into be what it gives, and what shares its memory be stale."""
        first = op.args[0] if op.args else None
        if not isinstance(first, Ref) or not isinstance(handle, Tensor):
            raise RefusedError("it writes into several tensors")
        written = self.handles[first.index]
        if isinstance(written, Tensor) and written.dtype != handle.dtype:
            handle = self.writer.cast(handle, written.dtype)
        for value in range(own):
            if value == first.index or self.handles[value] == written:
                self.handles[value] = handle
            elif self.memory[value] == self.memory[first.index]:
                self.stale.add(value)

    def _resolved(self, arg: Arg) -> Any:
        """Return an argument with handles for references and Python's own lists and slices."""
        if isinstance(arg, Ref):
            if arg.index in self.stale:
                raise RefusedError("it reads memory that an operator wrote into under another name")
            return self.handles[arg.index]
        if isinstance(arg, tuple):
            return tuple(map(self._resolved, arg))
        if isinstance(arg, ListArg):
            return [self._resolved(item) for item in arg.items]
        if isinstance(arg, SliceArg):
            return slice(*map(self._resolved, (arg.start, arg.stop, arg.step)))
        if isinstance(arg, DictArg):
            if next(iterate_refs(arg), None) is not None:
                raise RefusedError("it has a dictionary of tensors")
            return arg
        return arg


def _symbols(sample: Sample) -> dict[str, Ref]:
    return {
        each.source_name: Ref(index)
        for index, each in enumerate(sample.inputs)
        if each.role == "symbol"
    }


def _input_handle(sample: Sample, index: int) -> Any:
    each = sample.inputs[index]
    if each.role == "symbol":
        return Number(Ref(index), int)
    if each.role == "scalar":
        return Number(Ref(index), _KINDS[str(each.value.dtype)])
    return Tensor(Ref(index), each.value.dtype or "", each.value.shape or ())


def _without_stride(each: Input) -> Input:
    """Paddle's tensors lie in the order of their dimensions."""
    value = dataclasses.replace(each.value, stride=None)
    return dataclasses.replace(each, value=value, device="cpu")


def _results(sample: Sample) -> tuple[tuple[Value, ...], ...]:
    """Return what torch gives for each operator; what is not recorded is propagated."""
    if all(op.results is not None for op in sample.ops):
        return tuple(op.results or () for op in sample.ops)
    from ...frameworks.torch.shapes import propagate

    propagated = propagate(sample)
    return tuple(
        op.results if op.results is not None else (found or ())
        for op, found in zip(sample.ops, propagated, strict=True)
    )


def _checked(handle: Any, results: tuple[Value, ...], writer: Writer) -> Any:
    """Return what a rule gave with the dtype and shape that torch records.

    Raises:
        RefusedError: the shape is another one.
    """
    if not isinstance(handle, Tensor) or len(results) != 1 or results[0].shape is None:
        return handle
    wanted = results[0]
    if len(wanted.shape or ()) != handle.ndim or any(
        isinstance(mine, int) and isinstance(theirs, int) and mine not in (theirs, -1)
        for mine, theirs in zip(handle.shape, wanted.shape or (), strict=True)
    ):
        raise RefusedError(f"its rule gives the shape {handle.shape}, torch {wanted.shape}")
    made = writer.cast(handle, wanted.dtype or handle.dtype)
    return Tensor(made.ref, made.dtype, wanted.shape or ())
