"""Calibrate a sample of torch: its graph, run operator by operator on the CPU."""

from __future__ import annotations

import math

import torch

from ...errors import CalibrationError, MaterializeError
from ...inputs.calibration import Moments, calibrate_by
from ...sample import Sample
from .materialize import materialize
from .tensors import make_input, make_inputs

_LARGEST_SHARE = 2**24
"""Elements of which the moments are taken, from the start of a larger tensor."""


def calibrate(
    sample: Sample,
    *,
    memory_limit_bytes: int | None = None,
    trust_remote_code: bool = False,
    allow_unchecked_operators: bool = False,
) -> Sample:
    """Return the sample with statistics that fit its graph; see `graphnet_datasets.calibrate`.

    Raises:
        CalibrationError: an operator of the graph fails.
        UnknownOperatorError, MemoryLimitError, MaterializeError: as `materialize`.
    """
    module = materialize(
        sample,
        memory_limit_bytes=memory_limit_bytes,
        trust_remote_code=trust_remote_code,
        allow_unchecked_operators=allow_unchecked_operators,
    )
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        return calibrate_by(sample, lambda each, seed: _Backend(module, each, seed))


class _Backend(torch.fx.Interpreter):
    """Runs single nodes of a materialized sample; node i of the graph is value i of the sample."""

    def __init__(self, module: torch.fx.GraphModule, sample: Sample, seed: int) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.sample = sample
        self.nodes = [node for node in module.graph.nodes if node.op != "output"]
        if len(self.nodes) != len(sample.inputs) + sample.num_ops:
            raise MaterializeError(f"`{sample.id}` was not built one node per operator.")
        torch.manual_seed(seed)
        self.seed = seed
        made = make_inputs(sample, seed).values()
        self.env = dict(zip(self.nodes, made, strict=False))

    def run(self, position: int) -> None:  # type: ignore[override]
        node = self.nodes[len(self.sample.inputs) + position]
        try:
            self.env[node] = self.run_node(node)
        except Exception as error:
            op = self.sample.ops[position]
            raise CalibrationError(
                f"Op {position} (`{op.target}`) of `{self.sample.id}` fails when it is run: "
                f"{type(error).__name__}: {str(error).splitlines()[0][:300] if str(error) else ''}"
            ) from error

    def make_input(self, sample: Sample, index: int) -> None:
        self.env[self.nodes[index]] = make_input(sample, index, self.seed)

    def root_mean_square(self, value: int) -> float | None:
        tensor = self.env.get(self.nodes[value])
        if not isinstance(tensor, torch.Tensor) or not tensor.numel():
            return None
        if not tensor.is_floating_point() and not tensor.is_complex():
            return None
        flat = tensor.detach().abs().reshape(-1)[:_LARGEST_SHARE].to(torch.float32)
        size = torch.linalg.vector_norm(flat).item() / math.sqrt(flat.numel())
        if math.isfinite(size):
            return size
        finite = flat[torch.isfinite(flat)].to(torch.float64)
        return finite.square().mean().sqrt().item() if finite.numel() else math.nan

    def channel_moments(self, value: int) -> Moments | None:
        tensor = self.env.get(self.nodes[value])
        if not isinstance(tensor, torch.Tensor) or tensor.dim() < 2 or not tensor.numel():
            return None
        axes = [0, *range(2, tensor.dim())]
        values = tensor.detach().to(torch.float32)
        variances, means = torch.var_mean(values, axes, correction=0)
        variances, means = variances.double(), means.double()
        return Moments(
            means.mean().item(),
            means.std(correction=0).item(),
            variances.mean().item(),
            variances.std(correction=0).item(),
        )

    def free(self, value: int) -> None:
        self.env.pop(self.nodes[value], None)
