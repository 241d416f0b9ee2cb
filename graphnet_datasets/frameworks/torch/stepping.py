"""A sample of torch, run operator by operator on the CPU."""

from __future__ import annotations

import re
from typing import Any

import torch
import torch.utils._pytree
from torch._C._functorch import is_batchedtensor  # pyright: ignore[reportMissingImports]

from ...errors import CalibrationError, GraphNetError, MaterializeError
from ...sample import Sample
from ...sample.targets import base_name
from .tensors import make_input, make_inputs

NARROW = (torch.float16, torch.bfloat16)
_NO_KERNEL = re.compile(r"not implemented for '(Half|BFloat16)'|[Uu]nsupported (dtype|datatype)")
"""What torch says of an operator that has no kernel on the CPU for what it is given."""


class Stepper(torch.fx.Interpreter):
    """Runs single operators of a materialized sample; node i of the graph is value i of the sample.

    Where it `emulates`, an operator without a kernel for 16-bit formats is computed in float32, and
    its results are rounded.

    Raises:
        MaterializeError: the graph has not one node per operator.
    """

    def __init__(
        self, module: torch.fx.GraphModule, sample: Sample, seed: int, emulates: bool = False
    ) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.sample = sample
        self.emulates = emulates
        self.nodes = [
            node for node in module.graph.nodes if node.op not in ("output", "call_module")
        ]
        if len(self.nodes) != len(sample.inputs) + sample.num_ops:
            raise MaterializeError(f"`{sample.id}` was not built one node per operator.")
        torch.manual_seed(seed)
        self.seed = seed
        made = make_inputs(sample, seed).values()
        self.env = dict(zip(self.nodes, made, strict=False))

    def run(self, position: int) -> None:  # type: ignore[override]
        """Run operator `position`, once more if it has run, and keep its result.

        Raises:
            CalibrationError: it fails.
            MemoryLimitError, TimeLimitError: only now is it known that it takes too much.
        """
        node = self.nodes[len(self.sample.inputs) + position]
        try:
            if node.prev.op == "call_module":  # the check of its sizes
                self.run_node(node.prev)
            self.env[node] = self._run(node)
        except GraphNetError:
            raise
        except Exception as error:
            op = self.sample.ops[position]
            raise CalibrationError(
                f"Op {position} (`{op.target}`) of `{self.sample.id}` fails when it is run: "
                f"{type(error).__name__}: {str(error).splitlines()[0][:300] if str(error) else ''}",
                operator=op.target,
            ) from error

    def _run(self, node: torch.fx.Node) -> Any:
        try:
            return self.run_node(node)
        except RuntimeError as error:
            if not self.emulates or not _NO_KERNEL.search(str(error)):
                raise
            args, kwargs = self.fetch_args_kwargs_from_env(node)
            given = torch.utils._pytree.tree_leaves((args, kwargs))
            formats = [each.dtype for each in given if isinstance(each, torch.Tensor)]
            narrow = next((each for each in formats if each in NARROW), None)
            if narrow is None or base_name(str(node.target)).endswith("_"):
                raise
        args, kwargs = _convert((args, kwargs), NARROW, torch.float32)
        wide = getattr(self, node.op)(node.target, args, kwargs)
        return _convert(wide, (torch.float32,), narrow)

    def make_input(self, sample: Sample, index: int, seed: int | None = None) -> None:
        """Make input `index` anew from the statistics that it has in `sample`."""
        self.env[self.nodes[index]] = make_input(sample, index, self.seed if seed is None else seed)

    def tensor(self, value: int) -> torch.Tensor | None:
        """Return a value, None where it is no tensor, has been freed, or is one of many under vmap.

        The elements of such a tensor decide nothing before the region ends.
        """
        found = self.env.get(self.nodes[value])
        is_tensor = isinstance(found, torch.Tensor)
        return found if is_tensor and not is_batchedtensor(found) else None

    def free(self, value: int) -> None:
        """Forget a value."""
        self.env.pop(self.nodes[value], None)

    def is_finite(self, value: int) -> bool:
        """Tell whether a value is no tensor of floating-point numbers or has finite ones only."""
        tensor = self.tensor(value)
        if tensor is None or not (tensor.is_floating_point() or tensor.is_complex()):
            return True
        return bool(torch.isfinite(tensor).all())

    def count_not_finite(self, value: int) -> tuple[int, int]:
        """Return how many elements of a value are NaN, and how many are infinite."""
        tensor = self.tensor(value)
        if tensor is None or self.is_finite(value):
            return 0, 0
        return int(torch.isnan(tensor).sum()), int(torch.isinf(tensor).sum())


def _convert(values: Any, formats: tuple[torch.dtype, ...], wanted: torch.dtype) -> Any:
    """Return values with their tensors of some formats in another one."""

    def convert(value: Any) -> Any:
        is_one = isinstance(value, torch.Tensor) and value.dtype in formats
        return value.to(wanted) if is_one else value

    return torch.utils._pytree.tree_map(convert, values)
