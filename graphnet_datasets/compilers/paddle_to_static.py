"""`paddle.jit.to_static`: the layer as a program in Paddle's IR, run by its executor."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from .paddle_base import PaddleCompiler, StaticProgram


class PaddleToStatic(PaddleCompiler):
    """Trace into one program that the PIR executor runs.

    The executor selects kernels and builds its instructions in its first call, so compilation
    includes one call. An error there is ignored because the first call of the run raises it again.
    """

    name = "paddle-to-static"
    backend: ClassVar[str | None] = None

    def compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        program = StaticProgram(module, example_inputs, backend=self.backend)
        self.fixed_inputs = program.fixed_inputs(example_inputs)
        with contextlib.suppress(Exception):
            program(**example_inputs)
        return program
