"""Translation of torch samples to paddle, operator by operator."""

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
    """Translate a torch sample to a paddle sample that computes the same results.

    Inputs keep their order, roles, names, statistics and stored elements, and the sample its id, so
    that equal seeds draw equal numbers for both samples. Each operator is translated by the rule of
    its name (`RULES`), with the shapes and dtypes recorded in the torch sample; missing ones are
    propagated, which requires torch. In-place operators become out-of-place operators.

    Raises:
        TranslationError: an operator has no rule, or its rule rejects the call, for example because
            the operator draws random numbers, normalizes with batch statistics, or has an argument
            that paddle does not support. The message names the operator and its position.
        SampleError: it is not a torch sample.

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
            f"`{sample.id}` is a {sample.framework} sample; only torch samples can be translated."
        )
    return _Translation(sample).run()


class _Translation:
    """State of a translation: the handles of the values of the torch sample."""

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
        """Translate all operators and return the sample."""
        sample, num_inputs = self.sample, len(self.sample.inputs)
        for position, op in enumerate(sample.ops):
            try:
                handle = self._translate(op, self.results[position], num_inputs + position)
            except RefusedError as error:
                raise TranslationError(
                    f"Op {position} (`{op.target}`) of `{sample.id}` cannot be translated to "
                    f"paddle. {error}"
                ) from error
            self.handles.append(handle)
        try:
            outputs = plain(self._resolved(sample.outputs))
        except RefusedError as error:
            raise TranslationError(
                f"The outputs of `{sample.id}` cannot be translated to paddle. {error}"
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
        match = find_rule(target)
        if match is None:
            raise RefusedError("The operator has no rule.")
        rule, is_inplace = match
        args = tuple(self._resolved(arg) for arg in op.args)
        kwargs = {name: self._resolved(arg) for name, arg in op.kwargs}
        if kwargs.pop("out", None) is not None:
            raise RefusedError("The argument `out` is not supported.")
        for spelling, name in (("axis", "dim"), ("keepdims", "keepdim")):
            if spelling in kwargs:  # NumPy's names, which torch accepts too
                kwargs[name] = kwargs.pop(spelling)
        if problem := does_not_take(rule, args, kwargs):
            raise RefusedError(f"Its rule does not accept these arguments ({problem}).")
        writer = self.writer
        writer.target, writer.module, writer.result = target.rstrip("_"), op.module, results
        handle = _checked(rule(writer, *args, **kwargs), results, writer)
        if is_inplace or "w" in classify("torch", op):
            self._rebind(op, handle, own)
        return handle

    def _rebind(self, op: Op, handle: Any, own: int) -> None:
        """Replace the handle of an overwritten value, and mark values that share its memory as
        stale.
        """
        first = op.args[0] if op.args else None
        if not isinstance(first, Ref) or not isinstance(handle, Tensor):
            raise RefusedError("Writes to several tensors are not supported.")
        written = self.handles[first.index]
        if isinstance(written, Tensor) and written.dtype != handle.dtype:
            handle = self.writer.cast(handle, written.dtype)
        for value in range(own):
            if value == first.index or self.handles[value] == written:
                self.handles[value] = handle
            elif self.memory[value] == self.memory[first.index]:
                self.stale.add(value)

    def _resolved(self, arg: Arg) -> Any:
        """Return an argument with handles in place of references, and Python lists and slices."""
        if isinstance(arg, Ref):
            if arg.index in self.stale:
                raise RefusedError(
                    "It reads memory that an operator has overwritten through another tensor."
                )
            return self.handles[arg.index]
        if isinstance(arg, tuple):
            return tuple(map(self._resolved, arg))
        if isinstance(arg, ListArg):
            return [self._resolved(item) for item in arg.items]
        if isinstance(arg, SliceArg):
            return slice(*map(self._resolved, (arg.start, arg.stop, arg.step)))
        if isinstance(arg, DictArg):
            if next(iterate_refs(arg), None) is not None:
                raise RefusedError("Dictionaries of tensors are not supported.")
            return arg
        return arg


def _symbols(sample: Sample) -> dict[str, Ref]:
    return {
        sample_input.source_name: Ref(index)
        for index, sample_input in enumerate(sample.inputs)
        if sample_input.role == "symbol"
    }


def _input_handle(sample: Sample, index: int) -> Any:
    sample_input = sample.inputs[index]
    if sample_input.role == "symbol":
        return Number(Ref(index), int)
    if sample_input.role == "scalar":
        return Number(Ref(index), _KINDS[str(sample_input.value.dtype)])
    return Tensor(Ref(index), sample_input.value.dtype or "", sample_input.value.shape or ())


def _without_stride(sample_input: Input) -> Input:
    """Drop strides, because paddle tensors are contiguous."""
    value = dataclasses.replace(sample_input.value, stride=None)
    return dataclasses.replace(sample_input, value=value, device="cpu")


def _results(sample: Sample) -> tuple[tuple[Value, ...], ...]:
    """Return the results of torch's operators, propagated where they are not recorded."""
    if all(op.results is not None for op in sample.ops):
        return tuple(op.results or () for op in sample.ops)
    from ...frameworks.torch.shapes import propagate

    propagated = propagate(sample)
    return tuple(
        op.results if op.results is not None else (shapes or ())
        for op, shapes in zip(sample.ops, propagated, strict=True)
    )


def _checked(handle: Any, results: tuple[Value, ...], writer: Writer) -> Any:
    """Return a handle with the dtype and shape recorded by torch.

    Raises:
        RefusedError: the shapes differ.
    """
    if not isinstance(handle, Tensor) or len(results) != 1 or results[0].shape is None:
        return handle
    recorded = results[0]
    if len(recorded.shape or ()) != handle.ndim or any(
        isinstance(size, int) and isinstance(recorded_size, int) and size not in (recorded_size, -1)
        for size, recorded_size in zip(handle.shape, recorded.shape or (), strict=True)
    ):
        raise RefusedError(f"Its rule returns the shape {handle.shape}, torch {recorded.shape}.")
    result = writer.cast(handle, recorded.dtype or handle.dtype)
    return Tensor(result.ref, result.dtype, recorded.shape or ())
