"""Operator-by-operator execution of torch samples."""

from __future__ import annotations

import re
import weakref
from typing import Any

import torch
import torch.utils._pytree
from torch._C._functorch import is_batchedtensor  # pyright: ignore[reportMissingImports]

from ...errors import CalibrationError, GraphNetError, MaterializeError, MemoryLimitError
from ...inputs import Mode
from ...sample import Op, Sample
from ...sample.targets import base_name
from ..input_limits import input_bytes, memory_limit
from ..stepping import Stepper as BaseStepper
from .materialize import materialize
from .operators.python import VMAP
from .shapes import check_memory
from .tensors import make_input, packed_on

NARROW = (torch.float16, torch.bfloat16)
_NO_KERNEL = re.compile(r"not implemented for '(Half|BFloat16)'|[Uu]nsupported (dtype|datatype)")
"""Matches torch's errors about missing CPU kernels for 16-bit dtypes."""


class Room:
    """Bytes left for inputs; an input's bytes return when its storage is freed."""

    def __init__(self, num_bytes: int) -> None:
        self.num_bytes = num_bytes

    def take(self, num_bytes: int, tensor: torch.Tensor) -> None:
        """Count a tensor until its storage is freed."""
        self.num_bytes -= num_bytes
        weakref.finalize(tensor.untyped_storage(), self._give_back, num_bytes).atexit = False

    def _give_back(self, num_bytes: int) -> None:
        self.num_bytes += num_bytes


def prepare(
    sample: Sample,
    memory_limit_bytes: int | None = None,
    device: str | torch.device = "cpu",
    **options: Any,
) -> tuple[torch.fx.GraphModule, int]:
    """Return the module of a `Stepper`, and the bytes available for inputs at a time.

    These are the bytes that intermediate values leave of the limit (default: the memory of this
    machine, or the free memory of a GPU). `options` are those of `materialize`.

    Raises:
        UnknownOperatorError, MemoryLimitError, MaterializeError: As in `materialize`, except that
            all inputs together may exceed the limit.
    """
    if memory_limit_bytes is None and str(device).startswith("cuda"):
        memory_limit_bytes, _ = torch.cuda.mem_get_info(device)
    limit = memory_limit(memory_limit_bytes)
    with_inputs = limit + sum(input_bytes(sample, index) for index in range(len(sample.inputs)))
    module = materialize(sample, device=device, memory_limit_bytes=with_inputs, **options)
    footprint = check_memory(sample, with_inputs, allow_unchecked_operators=True)  # cached
    return module, limit - (footprint.peak_bytes - footprint.input_bytes)


class Stepper(BaseStepper, torch.fx.Interpreter):
    """Runs single operators of a materialized sample; node i of the graph is value i of the sample.

    With `emulates`, operators without a 16-bit kernel are computed in float32 and their results are
    rounded. `module` and `room_bytes` come from `prepare`, for the same device.

    Raises:
        MaterializeError: If the graph does not have one node per operator.
    """

    def __init__(
        self,
        module: torch.fx.GraphModule,
        room_bytes: int,
        sample: Sample,
        seed: int,
        emulates: bool = False,
        device: str | torch.device = "cpu",
    ) -> None:
        BaseStepper.__init__(self, sample, seed)
        torch.fx.Interpreter.__init__(self, module, garbage_collect_values=False)
        self.emulates = emulates
        self.device = torch.device(device)
        self.room = Room(room_bytes)
        self.nodes = [
            node for node in module.graph.nodes if node.op not in ("output", "call_module")
        ]
        if len(self.nodes) != len(sample.inputs) + sample.num_ops:
            raise MaterializeError(f"`{sample.id}` was not built one node per operator.")
        torch.manual_seed(seed)
        self.env = {}
        if any(op.target == VMAP for op in sample.ops):  # inputs cannot be drawn inside vmap
            for index in range(len(sample.inputs)):
                self.make(index)

    def run(self, position: int) -> None:  # type: ignore[override]
        """Run operator `position`, possibly again, and keep its result.

        Raises:
            CalibrationError: If it fails.
            MemoryLimitError, TimeLimitError: If the operator, or an input it reads, exceeds a limit
                that could not be checked before the run.
        """
        node = self.nodes[len(self.sample.inputs) + position]
        with self.with_operands(position):
            self._keep(node, position)

    def _keep(self, node: torch.fx.Node, position: int) -> None:
        op = self.sample.ops[position]
        try:
            if node.prev.op == "call_module":  # the operator's size check
                self.run_node(node.prev)
            self.env[node] = self.compute(node, op)
        except GraphNetError:
            raise
        except torch.OutOfMemoryError as error:
            raise _exhausted(f"Op {position} (`{op.target}`)", self.sample, error) from error
        except Exception as error:
            raise CalibrationError(
                f"Op {position} (`{op.target}`) of `{self.sample.id}` fails when it is run: "
                f"{type(error).__name__}: {str(error).splitlines()[0][:300] if str(error) else ''}",
                operator=op.target,
            ) from error

    def compute(self, node: torch.fx.Node, op: Op) -> Any:
        """Return the result of an operator whose operands are available."""
        try:
            return self.run_node(node)
        except RuntimeError as error:
            if not self.emulates or not _NO_KERNEL.search(str(error)):
                raise
            narrow = next((dtype for dtype in self.operand_dtypes(node) if dtype in NARROW), None)
            if narrow is None or base_name(op.target).endswith("_"):
                raise
        return self.compute_in_float32(node, narrow)

    def operand_dtypes(self, node: torch.fx.Node) -> list[torch.dtype]:
        """Return the dtypes of an operator's tensor operands."""
        operands = torch.utils._pytree.tree_leaves(self.fetch_args_kwargs_from_env(node))
        return [operand.dtype for operand in operands if isinstance(operand, torch.Tensor)]

    def compute_in_float32(self, node: torch.fx.Node, narrow: torch.dtype) -> Any:
        """Compute a 16-bit operator in float32 and round its result once."""
        args, kwargs = _convert(self.fetch_args_kwargs_from_env(node), NARROW, torch.float32)
        wide = getattr(self, node.op)(node.target, args, kwargs)
        return _convert(wide, (torch.float32,), narrow)

    def holds(self, value: int) -> bool:
        """Return whether a value is available."""
        return self.nodes[value] in self.env

    def draw(self, sample: Sample, index: int, seed: int, mode: Mode = "replay") -> None:
        """Create input `index` from its statistics in `sample`, and keep it.

        Raises:
            MemoryLimitError: If it does not fit beside the inputs that are still needed.
        """
        num_bytes = input_bytes(sample, index)
        if num_bytes > self.room.num_bytes:
            raise MemoryLimitError(
                f"Input `{sample.input_names[index]}` of `{sample.id}` takes "
                f"{num_bytes / 1e9:,.3f} GB, but only {max(self.room.num_bytes, 0) / 1e9:,.3f} GB "
                "are left. Raise `memory_limit_bytes`, or skip the sample."
            )
        try:
            with packed_on(self.device):
                tensor = make_input(sample, index, seed, mode, device=self.device)
        except torch.OutOfMemoryError as error:
            raise _exhausted(f"Making `{sample.input_names[index]}`", sample, error) from error
        self.env[self.nodes[index]] = tensor
        if isinstance(tensor, torch.Tensor):
            self.room.take(num_bytes, tensor)

    def discard(self, value: int) -> None:
        """Release a value, if it is available."""
        self.env.pop(self.nodes[value], None)

    def tensor(self, value: int) -> torch.Tensor | None:
        """Return a value if it is an available tensor that is not batched by vmap, else None.

        Elements of a batched tensor affect nothing before the region ends.
        """
        if value < len(self.sample.inputs) and not self.holds(value):
            self.make(value)
        stored = self.env.get(self.nodes[value])
        is_tensor = isinstance(stored, torch.Tensor)
        return stored if is_tensor and not is_batchedtensor(stored) else None

    def is_finite(self, value: int) -> bool:
        """Return whether a value has no NaN or infinite elements; other values count as finite."""
        tensor = self.tensor(value)
        if tensor is None or not (tensor.is_floating_point() or tensor.is_complex()):
            return True
        return bool(torch.isfinite(tensor).all())

    def count_not_finite(self, value: int) -> tuple[int, int]:
        """Return the numbers of NaN and infinite elements of a value."""
        tensor = self.tensor(value)
        if tensor is None or self.is_finite(value):
            return 0, 0
        return int(torch.isnan(tensor).sum()), int(torch.isinf(tensor).sum())


def _exhausted(purpose: str, sample: Sample, error: Exception) -> MemoryLimitError:
    return MemoryLimitError(
        f"{purpose} of `{sample.id}` runs out of device memory, which other processes may use as "
        f"well: {str(error).splitlines()[0][:300]} Run fewer samples at a time, or use another "
        "device."
    )


def _convert(values: Any, formats: tuple[torch.dtype, ...], wanted: torch.dtype) -> Any:
    """Convert the tensors of some dtypes in nested values to another dtype."""

    def convert(value: Any) -> Any:
        is_one = isinstance(value, torch.Tensor) and value.dtype in formats
        return value.to(wanted) if is_one else value

    return torch.utils._pytree.tree_map(convert, values)
