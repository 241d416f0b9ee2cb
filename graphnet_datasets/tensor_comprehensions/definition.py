"""`define`: source text as operators that are called like functions."""

from __future__ import annotations

import collections
import functools
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import KernelInputError, TensorComprehensionError
from .arguments import Framework, framework_of
from .cache import TuningCache, cache_key
from .calling import BoundKernel, by_name
from .compiling import compile_general, compile_instance
from .cuda import GpuKernel, torch_kernel
from .language import CheckedDefinition, Inference, Instance, check, infer, instantiate
from .language.inference import check_strides
from .language.instance import row_major
from .language.interpreter import interpret
from .options import Options
from .packages import Package
from .triton.kernel import TritonKernel
from .tuner import Progress, TunerConfig, autotune

MAX_MEMOISED = 256
"""Kernels cached per definition; the oldest is evicted first."""
MAX_SPECIALISED = 8
"""Sizes for which a definition compiles their own kernels before it uses general kernels."""


def define(source: str, *, max_specialised: int = MAX_SPECIALISED) -> Definition:
    """Parse and check the definitions in a source string.

    >>> tc = define("def axpy(float a, float(N) X, float(N) Y) -> (Z) { Z(i) = a * X(i) + Y(i) }")
    >>> tc.names
    ('axpy',)

    Args:
        max_specialised: number of sizes for which calls compile their own kernels. Calls with
            further sizes share general kernels, which take the sizes as parameters.

    Raises:
        DefinitionError: the source is invalid; the message points at the place.
    """
    return Definition(source, max_specialised=max_specialised)


class Definition:
    """Definitions as operators: call `definition.name(tensors…)`.

    The first call with new sizes compiles a kernel, which later calls reuse. After
    `max_specialised` sizes, the kernels of further sizes share compiled code.
    """

    def __init__(
        self,
        source: str,
        *,
        max_specialised: int = MAX_SPECIALISED,
        package: Package | None = None,
    ) -> None:
        self.source, self.max_specialised, self._package = source, max_specialised, package
        self._num_specialised: collections.Counter[Any] = collections.Counter()
        self._checked = {checked.name: checked for checked in check(source)}
        self._kernels: dict[Any, BoundKernel] = {}
        self._last: dict[str, tuple[Options | None, bool | None, BoundKernel]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the definitions."""
        return tuple(self._checked)

    def checked(self, name: str) -> CheckedDefinition:
        """Return a checked definition by name.

        Raises:
            TensorComprehensionError: there is no such definition.
        """
        if name not in self._checked:
            raise TensorComprehensionError(
                f"There is no definition `{name}`; choose from {', '.join(self.names)}."
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
        """Infer ranges and output shapes for input shapes; the result prints readably.

        Args:
            name: the definition.
            shapes: a shape or tensor for each input.
            constants: values of integral scalar inputs, which are then omitted from `shapes`.
            strict: raise instead of warn if a precondition cannot be proven.
            check_bounds: clamp subscripts without a proof to their tensors.

        >>> print(define("def f(float(N) A) -> (B) { B(i) = A(i) + A(i+1) }").infer("f", (8,)))
        B(i) = A(i) + A(i+1)
            i in 0 : N - 1  = 0:7
        float32 B(N - 1) = (7,)

        Raises:
            KernelInputError: the shapes do not match the definition.
            RangeInferenceError: a range cannot be inferred or is empty.
        """
        return infer(
            self.checked(name),
            [getattr(shape, "shape", shape) for shape in shapes],
            constants=constants,
            strict=strict,
            check_bounds=check_bounds,
        )

    def interpret(
        self,
        name: str,
        *inputs: Any,
        outputs: Mapping[str, Any] | Sequence[Any] | None = None,
        float64: bool = False,
        constants: Mapping[str, int] | None = None,
        check_bounds: bool = False,
    ) -> Any:
        """Evaluate a definition with NumPy: slow, but the reference for kernels.

        Args:
            inputs: NumPy, torch or paddle tensors.
            outputs: initial contents of accumulated outputs, by name or all in order; not modified.
            float64: compute and return every float as float64.

        Returns:
            The output, or a tuple of them, in the framework of the inputs.

        >>> define("def f(int32(N) A) -> (S) { S +=! A(i) }").interpret("f", [1, 2, 4]).item()
        7
        """
        checked = self.checked(name)
        framework, inputs, constants = self._prepared(checked, inputs, constants)
        arrays = [framework.to_numpy(tensor) for tensor in inputs]
        instance = instantiate(
            checked,
            [array.shape for array in arrays],
            constants=constants,
            check_bounds=check_bounds,
        )
        initial = {
            name: framework.to_numpy(value) for name, value in by_name(instance, outputs).items()
        }
        results = interpret(instance, arrays, initial, float64=float64)
        converted = [
            framework.from_numpy(result, "float64" if wide else tensor.dtype.name)
            for result, tensor in zip(results, instance.outputs, strict=True)
            for wide in [float64 and tensor.dtype.is_float]
        ]
        return converted[0] if len(converted) == 1 else tuple(converted)

    def compile(
        self,
        name: str,
        *examples: Any,
        options: Options | None = None,
        constants: Mapping[str, int] | None = None,
        strict: bool = False,
        check_bounds: bool | None = None,
        timeout_s: float = 60.0,
        is_general: bool = False,
    ) -> BoundKernel:
        """Compile a kernel for inputs like the examples, on the device of the examples.

        Args:
            examples: tensors with the shapes, dtypes and strides of the inputs. A Python int for an
                integral scalar becomes a constant of the kernel.
            options: compile options; by default a model of the processor chooses them.
            check_bounds: None clamps data-dependent subscripts to their tensors and raises if any
                other subscript leaves its tensor for these sizes; True clamps those as well. False
                trusts all subscripts: wrong ones read foreign memory or crash the process.
            timeout_s: time limit of the C compiler in seconds.
            is_general: compile CPU code that takes the sizes as parameters. Kernels of other sizes
                then usually need no C compiler. `options` are ignored.

        Raises:
            KernelInputError: the examples do not match the definition.
            RangeInferenceError: a range cannot be inferred, or a subscript would be out of range
                for these sizes.
            KernelCompileError: the C compiler is missing, fails or reaches a limit.
        """
        checked = self.checked(name)
        framework, examples, constants = self._prepared(checked, examples, constants)
        described = [framework.describe(example) for example in examples]
        instance = self._instance(checked, described, constants, strict, check_bounds)
        for tensor, (dtype, _, _) in zip(instance.inputs, described, strict=True):
            if dtype != tensor.dtype.name:
                raise KernelInputError(
                    f"The input `{tensor.name}` of `{name}` is {dtype}; it must be "
                    f"{tensor.dtype}. Convert it first."
                )
        if framework.device is not None:
            kernel = _gpu_kernel(instance, options, framework.device)
        elif self._package is not None and (ready := self._package.kernel(instance)) is not None:
            kernel = ready
        elif self._package is not None and shutil.which((options or Options()).compiler) is None:
            raise self._package.error(instance)
        elif is_general:
            kernel = compile_general(instance, timeout_s=timeout_s)
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
        """Return a definition specialised to inputs like the examples, ready for a compiler."""
        checked = self.checked(name)
        framework, examples, constants = self._prepared(checked, examples, constants)
        described = [framework.describe(example) for example in examples]
        return self._instance(checked, described, constants, False, check_bounds)

    def instance_at(
        self,
        name: str,
        shapes: Sequence[Sequence[int]],
        *,
        constants: Mapping[str, int] | None = None,
        check_bounds: bool | None = None,
    ) -> Instance:
        """Return a definition specialised to dense inputs of these shapes; see `compile`.

        >>> tc = define("def f(float(N) A) -> (B) { B(i) = A(i) * 2 }")
        >>> tc.instance_at("f", [(8,)]).outputs[0].shape
        (8,)
        """
        checked = self.checked(name)
        described = [("", tuple(shape), row_major(tuple(shape))) for shape in shapes]
        return self._instance(checked, described, constants or {}, False, check_bounds)

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
        """Search for the fastest options for inputs like the examples.

        For tensors on a GPU, the options of Triton are searched.

        Args:
            examples: tensors to check and time candidates with.
            start: options to try first.
            config: search strategy and budget.
            check_bounds: see `compile`.
            cache: path of a file of tuned options.
            load: start from cached options for the same definition, sizes and machine.
            store: add the best options to the cache.
            log: path of a file of candidates; an interrupted search resumes from it.
            progress: called after each candidate.

        Raises:
            TensorComprehensionError: no candidate ran successfully.
        """
        checked = self.checked(name)
        framework, inputs, constants = self._prepared(checked, examples, None)
        described = [framework.describe(array) for array in inputs]
        instance = self._instance(checked, described, constants, False, check_bounds)
        first = [start] if isinstance(start, Options) else list(start)
        table = TuningCache(cache) if cache is not None else None
        key = cache_key(instance, device=framework.device)
        if table is not None and load:
            first += table.ranked(key, any_machine=True)
        config = config or TunerConfig()
        arrays = [framework.to_numpy(array) for array in inputs]
        result = autotune(
            instance,
            arrays,
            start=first,
            config=config,
            device=framework.device,
            log=log,
            progress=progress,
        )
        if table is not None and store:
            table.add(key, result.ranked()[: config.num_saved])
        return result.options

    def cached_options(
        self, name: str, *examples: Any, cache: str | Path, check_bounds: bool | None = None
    ) -> Options | None:
        """Return the fastest options in a cache for inputs like the examples, or None.

        Without options for this machine, those of another machine with the same vector instructions
        are returned.
        """
        instance = self.instance(name, *examples, check_bounds=check_bounds)
        device = framework_of(examples).device
        return TuningCache(cache).best(cache_key(instance, device=device), any_machine=True)

    def __call__(
        self,
        name: str,
        *inputs: Any,
        outputs: Any = None,
        options: Options | None = None,
        check_bounds: bool | None = None,
    ) -> Any:
        """Compute a definition; the same as `definition.name(…)`.

        The first call for a combination of sizes, dtypes and strides compiles a kernel, which is
        cached.

        Args:
            inputs: tensors of one framework, and numbers for scalars. A Python int for an integral
                scalar becomes a constant of the kernel.
            outputs: tensors to write to or accumulate into; see `BoundKernel`.
            check_bounds: see `compile`.

        Raises:
            KernelInputError: the inputs do not match the definition.
        """
        last_options, last_check, last = self._last.get(name, (None, None, None))
        is_same = options is last_options and check_bounds is last_check
        if last is not None and is_same and last.fits(inputs):
            return last(*inputs, outputs=outputs, unchecked=True)
        constants: dict[str, int] = {}
        if any(_is_literal(value) for value in inputs):
            _, inputs, constants = self._prepared(self.checked(name), inputs, None)
        framework = framework_of(inputs)
        described = tuple([framework.describe(tensor) for tensor in inputs])
        key = (name, framework.name, described, tuple(constants.items()), options, check_bounds)
        kernel = self._kernels.get(key)
        if kernel is None:
            ranks = tuple((dtype, len(shape)) for dtype, shape, _ in described)
            group = (name, framework.name, ranks, check_bounds)
            is_general = options is None and self._num_specialised[group] >= self.max_specialised
            kernel = self.compile(
                name,
                *inputs,
                options=options,
                constants=constants,
                check_bounds=check_bounds,
                is_general=is_general,
            )
            self._num_specialised[group] += 1
            while len(self._kernels) >= MAX_MEMOISED:
                self._kernels.pop(next(iter(self._kernels)))
            self._kernels[key] = kernel
        if not constants:
            self._last[name] = (options, check_bounds, kernel)
        return kernel(*inputs, outputs=outputs)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or name not in self._checked:
            raise AttributeError(
                f"There is no definition `{name}`; choose from {', '.join(self._checked)}."
            )
        return self[name]

    def __getitem__(self, name: str) -> Callable[..., Any]:
        self.checked(name)

        return functools.partial(self, name)

    def __repr__(self) -> str:
        return f"Definition({', '.join(self.names)})"

    def _prepared(
        self, checked: CheckedDefinition, inputs: Sequence[Any], constants: Mapping[str, int] | None
    ) -> tuple[Framework, tuple[Any, ...], dict[str, int]]:
        """Return the framework, the tensor inputs, and the constants including Python ints."""
        values = dict(constants or {})
        remaining = [parameter for parameter in checked.parameters if parameter.name not in values]
        if len(inputs) != len(remaining):
            names = ", ".join(parameter.name for parameter in remaining)
            raise KernelInputError(
                f"`{checked.name}` takes {len(remaining)} inputs ({names}), got "
                f"{len(inputs)}. Pass one value for each input."
            )
        framework, tensors = framework_of(inputs), []
        for parameter, value in zip(remaining, inputs, strict=True):
            is_int = isinstance(value, int) and not isinstance(value, bool)
            if is_int and not parameter.dimensions and parameter.type.is_integral:
                values[parameter.name] = int(value)
            elif _is_literal(value):
                dtype = parameter.type.name
                tensors.append(framework.from_numpy(_number(value, dtype), dtype))
            else:
                tensors.append(value)
        return framework, tuple(tensors), values

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
        violated = [condition.text for condition in instance.preconditions if condition.is_violated]
        if violated and not check_bounds:
            raise KernelInputError(
                f"`{checked.name}` would read out of bounds: {violated[0]} does not hold for "
                "these sizes. Pass `check_bounds=True` to clamp the subscript."
            )
        return instance


def _gpu_kernel(
    instance: Instance, options: Options | None, device: Any
) -> GpuKernel | TritonKernel:
    """Compile an instance for a GPU with the generator that the options name."""
    if options is not None and options.gpu == "triton":
        return TritonKernel(instance, options, device)
    return torch_kernel(instance, options, device)


def _is_literal(value: Any) -> bool:
    return isinstance(value, int | float | list)


def _number(value: Any, dtype: str) -> Any:

    return np.asarray(value, "float32" if dtype == "bfloat16" else dtype)
