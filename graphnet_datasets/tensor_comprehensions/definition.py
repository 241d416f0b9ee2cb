"""`define`: from text to operators that are called like functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import KernelInputError, TensorComprehensionError
from .arguments import Framework, framework_of
from .cache import TuningCache, cache_key
from .calling import BoundKernel
from .compiling import compile_instance
from .cuda import torch_kernel
from .language import CheckedDefinition, Inference, Instance, check, infer, instantiate
from .language.inference import check_strides
from .language.instance import row_major
from .language.interpreter import interpret
from .options import Options
from .tuner import Progress, TunerConfig, autotune

MAX_MEMOISED = 256
"""Kernels that a definition keeps; the one made longest ago goes first."""


def define(source: str) -> Definition:
    """Read definitions out of a text.

    >>> tc = define("def axpy(float a, float(N) X, float(N) Y) -> (Z) { Z(i) = a * X(i) + Y(i) }")
    >>> tc.names
    ('axpy',)

    Raises:
        DefinitionError: the text is wrong; the message points at the place.
    """
    return Definition(source)


class Definition:
    """The definitions of a text, each an operator: `definition.name(tensors…)`.

    The first call with new sizes compiles a kernel, which later calls find again.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self._checked = {each.name: each for each in check(source)}
        self._kernels: dict[Any, BoundKernel] = {}
        self._last: dict[str, tuple[Options | None, bool | None, BoundKernel]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the definitions."""
        return tuple(self._checked)

    def checked(self, name: str) -> CheckedDefinition:
        """Return the checked definition of that name.

        Raises:
            TensorComprehensionError: there is none.
        """
        if name not in self._checked:
            raise TensorComprehensionError(
                f"There is no definition `{name}`; there are {', '.join(self.names)}."
            )
        return self._checked[name]

    def infer(
        self,
        name: str,
        *shapes: Any,
        constants: Mapping[str, int] | None = None,
        strict: bool = False,
        check_bounds: bool = False,
    ) -> Inference:
        """Return ranges and shapes for inputs of the given shapes; prints readably.

        Args:
            name: the definition.
            shapes: a shape or a tensor for each input.
            constants: values of integral scalar inputs, which are then left out of the shapes.
            strict: raise instead of warning where a precondition cannot be proven.
            check_bounds: limit such subscripts to their tensors.

        >>> print(define("def f(float(N) A) -> (B) { B(i) = A(i) + A(i+1) }").infer("f", (8,)))
        B(i) = A(i) + A(i+1)
            i in 0 : N - 1  = 0:7
        float32 B(N - 1) = (7,)

        Raises:
            KernelInputError: the shapes do not fit.
            RangeInferenceError: a range cannot be inferred or is empty.
        """
        return infer(
            self.checked(name),
            [getattr(each, "shape", each) for each in shapes],
            constants=constants,
            strict=strict,
            check_bounds=check_bounds,
        )

    def interpret(
        self,
        name: str,
        *inputs: Any,
        outputs: Mapping[str, Any] | None = None,
        float64: bool = False,
        constants: Mapping[str, int] | None = None,
        check_bounds: bool = False,
    ) -> Any:
        """Compute with NumPy what the definition means; slow, and what kernels are compared with.

        Args:
            inputs: tensors of NumPy, torch or paddle.
            outputs: the contents of outputs that are accumulated into; not changed.
            float64: compute and return all floats in float64.

        Returns:
            The output, or a tuple of them, in the framework of the inputs.

        >>> define("def f(int32(N) A) -> (S) { S +=! A(i) }").interpret("f", [1, 2, 4]).item()
        7
        """
        checked = self.checked(name)
        framework, inputs, constants = self._prepared(checked, inputs, constants)
        arrays = [framework.to_numpy(each) for each in inputs]
        instance = instantiate(
            checked, [each.shape for each in arrays], constants=constants, check_bounds=check_bounds
        )
        given = {each: framework.to_numpy(value) for each, value in (outputs or {}).items()}
        found = interpret(instance, arrays, given, float64=float64)
        made = [
            framework.from_numpy(each, "float64" if wide else tensor.dtype.name)
            for each, tensor in zip(found, instance.outputs, strict=True)
            for wide in [float64 and tensor.dtype.is_float]
        ]
        return made[0] if len(made) == 1 else tuple(made)

    def compile(
        self,
        name: str,
        *examples: Any,
        options: Options | None = None,
        constants: Mapping[str, int] | None = None,
        strict: bool = False,
        check_bounds: bool | None = None,
        timeout_s: float = 60.0,
    ) -> BoundKernel:
        """Return a kernel for inputs like the given ones, on the device where these lie.

        Args:
            examples: tensors whose shapes, types and strides the kernel is made for. A Python int
                for an integral scalar becomes a constant of the kernel.
            options: how to compile; the defaults follow a model of the processor.
            check_bounds: None limits subscripts that depend on data to their tensors, and raises
                where a subscript leaves its tensor for these sizes; True limits that subscript too.
                False trusts all subscripts: wrong ones read foreign memory or end the process.
            timeout_s: how long the C compiler may take.

        Raises:
            KernelInputError: the examples do not fit the definition.
            RangeInferenceError: a range cannot be inferred, or a subscript would be out of range
                for these sizes.
            KernelCompileError: the C compiler is missing, fails or reaches a limit.
        """
        checked = self.checked(name)
        framework, examples, constants = self._prepared(checked, examples, constants)
        described = [framework.describe(each) for each in examples]
        instance = self._instance(checked, described, constants, strict, check_bounds)
        for tensor, (dtype, _, _) in zip(instance.inputs, described, strict=True):
            if dtype != tensor.dtype.name:
                raise KernelInputError(
                    f"The input `{tensor.name}` of `{name}` is {dtype}; it has to be "
                    f"{tensor.dtype}."
                )
        if framework.device is not None:
            kernel = torch_kernel(instance, options, framework.device)
        else:
            kernel = compile_instance(instance, options, timeout_s=timeout_s)
        return BoundKernel(kernel, framework, constants)

    def instance(
        self,
        name: str,
        *examples: Any,
        constants: Mapping[str, int] | None = None,
        check_bounds: bool | None = None,
    ) -> Instance:
        """Return a definition specialised to inputs like the given ones; what compilers take."""
        checked = self.checked(name)
        framework, examples, constants = self._prepared(checked, examples, constants)
        described = [framework.describe(each) for each in examples]
        return self._instance(checked, described, constants, False, check_bounds)

    def autotune(
        self,
        name: str,
        *examples: Any,
        start: Options | Sequence[Options] = (),
        config: TunerConfig | None = None,
        check_bounds: bool | None = None,
        cache: str | Path | None = None,
        load: bool = True,
        store: bool = True,
        log: str | Path | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Options:
        """Search for the fastest options for inputs like the given ones and return them.

        Args:
            examples: tensors to check and time candidates on.
            start: options to begin with.
            config: how long and how the search goes.
            check_bounds: see `compile`.
            cache: a file of tuned options.
            load: begin with the cache's options for this definition, these sizes and this machine.
            store: put the best into the cache.
            log: a file of candidates, by which an interrupted search goes on.
            progress: called after each candidate.

        Raises:
            TensorComprehensionError: no candidate ran.
        """
        checked = self.checked(name)
        framework, inputs, constants = self._prepared(checked, examples, None)
        if framework.device is not None:
            raise KernelInputError(
                f"Options are searched for on a processor, and these inputs are on "
                f"`{framework.device}`. Pass tensors of the CPU."
            )
        described = [framework.describe(each) for each in inputs]
        instance = self._instance(checked, described, constants, False, check_bounds)
        first = [start] if isinstance(start, Options) else list(start)
        table = TuningCache(cache) if cache is not None else None
        key = cache_key(instance)
        if table is not None and load:
            first += table.ranked(key, any_machine=True)
        config = config or TunerConfig()
        arrays = [framework.to_numpy(each) for each in inputs]
        result = autotune(instance, arrays, start=first, config=config, log=log, progress=progress)
        if table is not None and store:
            table.add(key, result.ranked()[: config.num_saved])
        return result.options

    def cached_options(
        self, name: str, *examples: Any, cache: str | Path, check_bounds: bool | None = None
    ) -> Options | None:
        """Return the fastest options that a cache has for inputs like these, None if it has none.

        Where it has none of this machine, those of another with the same vectors are taken.
        """
        instance = self.instance(name, *examples, check_bounds=check_bounds)
        return TuningCache(cache).best(cache_key(instance), any_machine=True)

    def __call__(
        self,
        name: str,
        *inputs: Any,
        outputs: Any = None,
        options: Options | None = None,
        check_bounds: bool | None = None,
    ) -> Any:
        """Compute a definition; `definition.name(…)` is the same.

        The kernel for these sizes, types and strides is compiled at the first call and memoised.

        Args:
            inputs: tensors of one framework; numbers for scalars. A Python int for an integral
                scalar becomes a constant of the kernel.
            outputs: what is written to, or accumulated into; see `BoundKernel`.
            check_bounds: see `compile`.

        Raises:
            KernelInputError: the inputs do not fit the definition.
        """
        last_options, last_check, last = self._last.get(name, (None, None, None))
        is_same = options is last_options and check_bounds is last_check
        if last is not None and is_same and last.fits(inputs):
            return last(*inputs, outputs=outputs, unchecked=True)
        constants: dict[str, int] = {}
        if any(_is_literal(each) for each in inputs):
            _, inputs, constants = self._prepared(self.checked(name), inputs, None)
        framework = framework_of(inputs)
        described = tuple([framework.describe(each) for each in inputs])
        key = (name, framework.name, described, tuple(constants.items()), options, check_bounds)
        kernel = self._kernels.get(key)
        if kernel is None:
            kernel = self.compile(
                name, *inputs, options=options, constants=constants, check_bounds=check_bounds
            )
            while len(self._kernels) >= MAX_MEMOISED:
                self._kernels.pop(next(iter(self._kernels)))
            self._kernels[key] = kernel
        if not constants:
            self._last[name] = (options, check_bounds, kernel)
        return kernel(*inputs, outputs=outputs)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or name not in self._checked:
            raise AttributeError(f"There is no definition `{name}`.")
        return self[name]

    def __getitem__(self, name: str) -> Callable[..., Any]:
        self.checked(name)

        return functools.partial(self, name)

    def __repr__(self) -> str:
        return f"Definition({', '.join(self.names)})"

    def _prepared(
        self, checked: CheckedDefinition, inputs: Sequence[Any], constants: Mapping[str, int] | None
    ) -> tuple[Framework, tuple[Any, ...], dict[str, int]]:
        """Return the framework, the inputs that stay, and the constants, Python ints among them."""
        values = dict(constants or {})
        remaining = [each for each in checked.parameters if each.name not in values]
        if len(inputs) != len(remaining):
            names = ", ".join(each.name for each in remaining)
            raise KernelInputError(
                f"`{checked.name}` takes {len(remaining)} inputs ({names}) but was given "
                f"{len(inputs)}."
            )
        framework, kept = framework_of(inputs), []
        for parameter, given in zip(remaining, inputs, strict=True):
            is_int = isinstance(given, int) and not isinstance(given, bool)
            if is_int and not parameter.dimensions and parameter.type.is_integral:
                values[parameter.name] = int(given)
            elif _is_literal(given):
                dtype = parameter.type.name
                kept.append(framework.from_numpy(_number(given, dtype), dtype))
            else:
                kept.append(given)
        return framework, tuple(kept), values

    def _instance(
        self,
        checked: CheckedDefinition,
        described: Sequence[tuple[str, tuple[int, ...], tuple[int, ...]]],
        constants: Mapping[str, int],
        strict: bool,
        check_bounds: bool | None,
    ) -> Instance:
        strides = []
        for _, shape, steps in described:
            try:
                check_strides("input", tuple(shape), tuple(steps))
                strides.append(tuple(steps))
            except KernelInputError:
                strides.append(row_major(tuple(shape)))
        instance = instantiate(
            checked,
            [shape for _, shape, _ in described],
            constants=constants,
            strides=strides,
            strict=strict,
            check_bounds=check_bounds is not False,
        )
        violated = [each.text for each in instance.preconditions if each.is_violated]
        if violated and not check_bounds:
            raise KernelInputError(
                f"`{checked.name}` would read outside of a tensor: {violated[0]} does not hold for "
                "these sizes. Pass `check_bounds=True` to limit the subscript."
            )
        return instance


def _is_literal(value: Any) -> bool:
    return isinstance(value, int | float | list)


def _number(value: Any, dtype: str) -> Any:

    return np.asarray(value, "float32" if dtype == "bfloat16" else dtype)
