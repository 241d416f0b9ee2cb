"""`extract_export`: a sample in ATen operators, through `torch.export`."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree

from ....errors import CaptureError
from ....sample import Provenance, Sample
from ....sample.vocabulary import Role, Task
from ..extract import describe_module
from .convert import Binding, Naming, convert
from .dynamo import bind_weight, source_name
from .fake_weights import fake_weights, has_weights

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
    """Return the sample that `torch.export` makes of one call; see `graphnet_datasets`."""
    kwargs = dict(kwargs or {})
    provenance = describe_module(provenance, module, "export")
    is_without_weights = not has_weights(module)
    weights = dict([*module.named_parameters(), *module.named_buffers()])
    with contextlib.ExitStack() as stack:
        if is_without_weights:
            stack.enter_context(stack.enter_context(fake_weights(module)).mode)
        try:
            program = torch.export.export(
                module, tuple(args), kwargs, dynamic_shapes=dynamic_shapes, strict=False
            )
        except Exception as error:  # torch.export documents no base class of what it raises
            first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise CaptureError(
                f"`{name}` cannot be exported: {first_line} Try `extract`, which captures in "
                "several parts what has no single graph."
            ) from error
    data = iter(_pytree.tree_leaves((tuple(args), kwargs), is_leaf=lambda leaf: leaf is None))
    bindings = []
    for spec in program.graph_signature.input_specs:
        role = _ROLES.get(spec.kind)
        if role is None:
            raise CaptureError(
                f"`{name}` takes `{spec.arg.name}` of kind {spec.kind.name}, which a sample "
                "cannot hold."
            )
        if role == "input":
            bindings.append(_data_binding(spec.arg.name, next(data)))
        else:
            path = str(spec.target)
            held = weights.get(path, program.constants.get(path))
            if not isinstance(held, torch.Tensor):
                raise CaptureError(f"`{name}` holds `{path}`, which is not a tensor.")
            if role == "constant":
                bindings.append(Binding(role, path.replace(".", "_"), held))
            else:
                bindings.append(
                    bind_weight(role, source_name(path, role), held, is_without_weights)
                )
    return convert(
        program.graph_module,
        bindings,
        Naming(name, task, provenance),
        value_key="val",
        module_path=_module_path,
        outputs=[
            index
            for index, spec in enumerate(program.graph_signature.output_specs)
            if spec.kind is OutputKind.USER_OUTPUT
        ],
    )


def _data_binding(name: str, given: Any) -> Binding:
    if isinstance(given, torch.Tensor):
        return Binding("input", name, given)
    number = given if isinstance(given, bool | int | float) else None
    return Binding("scalar", name, number=number)


def _module_path(stack: Mapping[str, Any]) -> str:
    path = str(list(stack.values())[-1][0]) if stack else ""
    return "" if path.startswith("_empty") else path
