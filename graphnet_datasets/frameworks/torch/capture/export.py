"""`extract_export`: capture a sample of ATen operators with `torch.export`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import is_fake
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree

from ....errors import CaptureError
from ....sample import Provenance, Sample
from ....sample.vocabulary import Role, Task
from ..extract import describe_module
from .convert import Binding, Conversion, Naming, convert
from .dynamo import bind_weight, silent, source_name
from .fake_weights import fake_weights, has_weights, unchecked
from .mismatches import cause_of_difference
from .refusals import explain_specialised, refuse_arguments, refuse_outputs
from .replay import first_difference, keep_leaves, leaves, replay
from .state import State

_ROLES: Mapping[InputKind, Role] = {
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "constant",
    InputKind.USER_INPUT: "input",
}


def extract_export(
    module: torch.nn.Module,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    name: str,
    task: Task = "other",
    dynamic_shapes: Any = None,
    provenance: Provenance = Provenance(),  # noqa: B008 - frozen
) -> Sample:
    """Return the sample that `torch.export` captures from one call; see `graphnet_datasets`."""
    refuse_arguments(name, args, kwargs or {})
    call = _Call(module, tuple(args), dict(kwargs or {}), name, dynamic_shapes)
    naming = Naming(name, task, describe_module(provenance, module, "export"))
    if not has_weights(module):
        with fake_weights(module) as fakes, fakes.mode:
            program = call.export()
        naming = dataclasses.replace(naming, provenance=unchecked(naming.provenance))
        return call.convert(program, naming, is_without_weights=True).sample
    before = State(module, call.args, call.kwargs)
    try:
        with silent():
            outputs = module(*call.args, **call.kwargs)
            refuse_outputs(name, outputs)
            expected = keep_leaves(outputs)
            before.restore()
            program = call.export()
            before.restore()
        conversion = call.convert(program, naming, is_without_weights=False)
        call.check(conversion, program, expected, before)
    finally:
        before.restore()
    return conversion.sample


@dataclasses.dataclass(frozen=True)
class _Call:
    """A module call to export."""

    module: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    name: str
    dynamic_shapes: Any

    def export(self) -> torch.export.ExportedProgram:
        """Export the call with `torch.export`."""
        try:
            return torch.export.export(
                self.module,
                self.args,
                self.kwargs,
                dynamic_shapes=self.dynamic_shapes,
                strict=False,
            )
        except Exception as error:  # torch.export documents no base class of its exceptions
            if specialised := explain_specialised(str(error)):
                raise CaptureError(f"`{self.name}` cannot be exported: {specialised}") from error
            first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise CaptureError(
                f"`{self.name}` cannot be exported: {first_line.rstrip('.')}. Try `extract`, "
                "which can split a module into several graphs."
            ) from error

    def convert(
        self, program: torch.export.ExportedProgram, naming: Naming, *, is_without_weights: bool
    ) -> Conversion:
        """Convert an exported program to a sample."""
        bindings = []
        for spec, argument in zip(
            program.graph_signature.input_specs, self._arguments(program), strict=True
        ):
            role, path = _ROLES[spec.kind], str(spec.target)
            if role == "input":
                bindings.append(_data_binding(spec.arg.name, argument))
            elif role == "constant":
                bindings.append(Binding(role, path.replace(".", "_"), argument))
            else:
                weight = source_name(path, role)
                bindings.append(bind_weight(role, weight, argument, is_without_weights))
        return convert(
            program.graph_module,
            bindings,
            naming,
            value_key="val",
            module_path=_module_path,
            outputs=[
                index
                for index, spec in enumerate(program.graph_signature.output_specs)
                if spec.kind is OutputKind.USER_OUTPUT
            ],
        )

    def check(
        self,
        conversion: Conversion,
        program: torch.export.ExportedProgram,
        expected: Mapping[str, Any],
        before: State,
    ) -> None:
        """Run the sample on the arguments; raise `CaptureError` if its outputs differ."""
        try:
            outputs = replay(conversion, self._arguments(program))
        except CaptureError:
            raise
        except Exception as error:  # operators may raise any exception
            raise CaptureError(
                f"The graph exported from `{self.name}` does not run on the tensors of its call: "
                f"{type(error).__name__}: {error}"
            ) from error
        problem = first_difference(
            [leaf for _, leaf in leaves(outputs)],
            {f"outputs[{index}]": leaf for index, leaf in enumerate(expected.values())},
        )
        if problem:
            cause = cause_of_difference(self._call_again, before, expected)
            raise CaptureError(
                f"The graph exported from `{self.name}` does not compute the results of the "
                f"module: {problem}. {cause}"
            )

    def _call_again(self) -> Any:
        with silent():
            return self.module(*self.args, **self.kwargs)

    def _arguments(self, program: torch.export.ExportedProgram) -> list[Any]:
        """Return the values of an exported program's placeholders, in order."""
        weights = dict(
            [
                *self.module.named_parameters(remove_duplicate=False),
                *self.module.named_buffers(remove_duplicate=False),
            ]
        )
        data = iter(
            _pytree.tree_leaves((self.args, self.kwargs), is_leaf=lambda leaf: leaf is None)
        )
        arguments = []
        for spec in program.graph_signature.input_specs:
            role = _ROLES.get(spec.kind)
            if role is None:
                raise CaptureError(
                    f"`{self.name}` takes `{spec.arg.name}` of kind {spec.kind.name}, which a "
                    "sample cannot represent."
                )
            if role == "input":
                arguments.append(next(data))
                continue
            path = str(spec.target)
            tensor = weights.get(path, program.constants.get(path))
            if not isinstance(tensor, torch.Tensor):
                raise CaptureError(f"`{self.name}` holds `{path}`, which is not a tensor.")
            if role == "constant" and is_fake(tensor):
                raise CaptureError(
                    f"`{self.name}` computes `{path}`, of which torch traced no elements, and "
                    "keeps it as a constant. Compute it before the call and pass it as an argument."
                )
            arguments.append(tensor)
        return arguments


def _data_binding(name: str, value: Any) -> Binding:
    if isinstance(value, torch.Tensor):
        return Binding("input", name, value)
    number = value if isinstance(value, bool | int | float) else None
    return Binding("scalar", name, number=number)


def _module_path(stack: Mapping[str, Any]) -> str:
    path = str(list(stack.values())[-1][0]) if stack else ""
    return "" if path.startswith("_empty") else path
