"""Evaluation of Triton candidates on a GPU."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import time
from collections.abc import Sequence
from typing import Any

from ...errors import GraphNetError
from ..language.instance import Instance
from ..options import Options
from ..triton import write_triton
from .config import Candidate, TunerConfig
from .evaluation import Evaluator, Made


class TritonEvaluator(Evaluator):
    """Checks and times Triton candidates on a GPU; the measuring process compiles them."""

    _worker = "graphnet_datasets.tensor_comprehensions.tuner.triton_worker"
    _is_memory_enforced = False  # drivers of GPUs map far more memory than they use

    def __init__(
        self,
        instance: Instance,
        inputs: Sequence[Any],
        config: TunerConfig,
        outputs: dict[str, Any] | None,
        device: Any,
    ) -> None:
        self._device = str(device)
        super().__init__(instance, inputs, config, outputs)

    def _open_compilers(self, stack: contextlib.ExitStack) -> None:
        """Start nothing."""

    def _generate(self, options: Options) -> Made | Candidate:
        try:
            program = write_triton(self._instance, options)
        except GraphNetError as error:
            return Candidate(options, error=str(error), at_s=time.perf_counter() - self.start)
        text = f"{program.source}{program.launches}"
        return Made(options, program, 1, hashlib.sha256(text.encode()).hexdigest())

    def _compile(self, generated: Sequence[Made]) -> dict[str, str]:  # noqa: ARG002
        return {}

    def _code(self, generated: Made) -> tuple[dict[str, Any], tuple[str, ...]]:
        program = generated.program
        code = {
            "source": program.source,
            "launches": [dataclasses.asdict(launch) for launch in program.launches],
            "types": {name: scalar.name for name, scalar in program.types.items()},
            "partials": program.partials,
            "device": self._device,
        }
        return code, ()
