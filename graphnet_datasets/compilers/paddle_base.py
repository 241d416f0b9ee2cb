"""Common parts of the Paddle compilers: availability, version, and tensor-only layers."""

from __future__ import annotations

import contextlib
import importlib.metadata
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from ..errors import FixedInputError
from .base import Compiler

DISTRIBUTIONS = ("paddlepaddle", "paddlepaddle-gpu")


class PaddleCompiler(Compiler):
    """Base class of the compilers for Paddle samples."""

    framework: ClassVar[str] = "paddle"
    package: ClassVar[str] = "paddlepaddle"
    module: ClassVar[str] = "paddle"
    extra: ClassVar[str] = "paddle"

    @classmethod
    def version(cls) -> str:
        """Return the version of the installed Paddle distribution, or ""."""
        for distribution in DISTRIBUTIONS:
            try:
                return importlib.metadata.version(distribution)
            except importlib.metadata.PackageNotFoundError:
                continue
        return ""


class StaticProgram:
    """A module traced by `paddle.jit.to_static` and called with its inputs by name.

    The program takes the tensors among the inputs, except those in `left_out`, and returns a flat
    tuple of tensors. Other inputs are fixed at their example values.
    """

    def __init__(
        self,
        module: Callable[..., Any],
        example_inputs: Mapping[str, Any],
        *,
        backend: str | None = None,
        left_out: Collection[str] = (),
    ) -> None:
        import paddle

        self.tensor_names = tuple(
            name
            for name, value in example_inputs.items()
            if isinstance(value, paddle.Tensor) and name not in left_out
        )
        self.fixed = {
            name: value for name, value in example_inputs.items() if name not in self.tensor_names
        }
        self.left_out = frozenset(left_out)
        names, fixed, structures = self.tensor_names, self.fixed, []

        @paddle.jit.not_to_static
        def flatten(outputs: Any) -> Any:
            structures.append(outputs)
            # The trailing None prevents Paddle from wrapping a single output in a list.
            return (*_tensors(outputs), None)

        class Call(paddle.nn.Layer):
            def __init__(self) -> None:
                super().__init__()
                self.module = module
                for index, name in enumerate(left_out):
                    # Operators that no output depends on may use this tensor, so the program must
                    # contain it.
                    self.register_buffer(f"left_out_{index}", example_inputs[name])

            def forward(self, tensors: Any) -> Any:
                return flatten(self.module(**dict(zip(names, tensors)), **fixed))  # noqa: B905

        layer = Call()
        layer.eval()
        specifications = [
            paddle.static.InputSpec(
                list(example_inputs[name].shape), example_inputs[name].dtype, stop_gradient=True
            )
            for name in names
        ]
        to_static: Any = paddle.jit.to_static
        self.static = to_static(
            layer, input_spec=[specifications], full_graph=True, backend=backend
        )
        with quiet():
            self.traced = self.static.forward.concrete_program
        self.structure = structures[-1]

    def __call__(self, **inputs: Any) -> Any:
        return self.rebuild(self.static(self.arguments(inputs)))

    def arguments(self, inputs: Mapping[str, Any]) -> list[Any]:
        """Return the input tensors of a call in the order in which they were traced.

        Raises:
            FixedInputError: An input differs from the value fixed at compilation.
        """
        for name, value in self.fixed.items():
            if name not in self.left_out and inputs[name] != value:
                raise FixedInputError(
                    f"The input `{name}` was fixed at {value!r} when the module was compiled; "
                    f"it cannot be {inputs[name]!r} now."
                )
        return [inputs[name] for name in self.tensor_names]

    def fixed_inputs(self, example_inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the traced sizes and numbers; see `Compiler.fixed_inputs`."""
        return {
            name: value if name in self.fixed else tuple(value.shape)
            for name, value in example_inputs.items()
            if name not in self.left_out
        }

    def rebuild(self, tensors: Iterable[Any]) -> Any:
        """Rebuild the module's output structure from the flat tensors."""
        return _fill(self.structure, iter(tensors))

    def unused_inputs(self) -> list[str]:
        """Return the names of the inputs on which no output depends."""
        visited: set[int] = set()
        pending = _tensors(self.traced.outputs)
        while pending:
            value = pending.pop()
            # Compare hashes, because `==` between two values would add an operator.
            if value.initialized() and value.hash() not in visited:
                visited.add(value.hash())
                pending += value.get_defining_op().operands_source()
        pairs = zip(self.tensor_names, _tensors(self.traced.inputs), strict=True)
        return [name for name, value in pairs if value.hash() not in visited]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress the warnings about Paddle's own functions while it traces and saves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _tensors(structure: Any) -> list[Any]:
    """Return the tensors, or program values, in nested lists, tuples and dictionaries."""
    if isinstance(structure, dict):
        structure = tuple(structure.values())
    if isinstance(structure, list | tuple):
        return [leaf for item in structure for leaf in _tensors(item)]
    return [structure] if _is_tensor(structure) else []


def _fill(structure: Any, tensors: Iterator[Any]) -> Any:
    """Return `structure` with its tensors replaced by those of `tensors`, in order."""
    if isinstance(structure, dict):
        return {key: _fill(item, tensors) for key, item in structure.items()}
    if isinstance(structure, list | tuple):
        return type(structure)([_fill(item, tensors) for item in structure])
    return next(tensors) if _is_tensor(structure) else structure


def _is_tensor(leaf: Any) -> bool:
    return hasattr(leaf, "stop_gradient") and hasattr(leaf, "shape")
