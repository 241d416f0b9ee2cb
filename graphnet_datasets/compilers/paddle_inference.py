"""Paddle Inference: a saved program, optimised by inference passes and run by its predictor."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from .options import Option
from .paddle_base import PaddleCompiler, StaticProgram, quiet

_POOL_MIB = 256
"""Initial GPU memory pool of the predictor, which grows on demand."""


class PaddleInference(PaddleCompiler):
    """Trace, save and load as a predictor, which optimises the program on loading."""

    name = "paddle-inference"
    option_table: ClassVar[Mapping[str, Option]] = {
        "ir_optim": Option(True, "Apply the passes that fuse operators."),
        "onednn": Option(False, "Use oneDNN kernels on the CPU."),
    }

    def compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        import paddle
        from paddle import inference

        program = StaticProgram(module, example_inputs)
        unused = program.unused_inputs()
        if unused:  # a saved program must not have unused inputs
            program = StaticProgram(module, example_inputs, left_out=unused)
        self.fixed_inputs = program.fixed_inputs(example_inputs)
        with tempfile.TemporaryDirectory(prefix="graphnet-paddle-") as folder, quiet():
            path = Path(folder) / "model"
            paddle.jit.save(program.static, str(path))
            config = inference.Config(f"{path}.json", f"{path}.pdiparams")
            config.disable_glog_info()
            config.switch_ir_optim(self.options["ir_optim"])
            if paddle.device.get_device().startswith("gpu"):
                config.enable_use_gpu(_POOL_MIB, int(paddle.device.get_device().rpartition(":")[2]))
            else:
                config.disable_gpu()
                config.set_cpu_math_library_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
                if self.options["onednn"]:
                    config.enable_mkldnn()
                else:
                    config.disable_mkldnn()
            predictor = inference.create_predictor(config)
        # The names end with the positions of the tensors.
        order = [int(name.rpartition("_")[2]) for name in predictor.get_input_names()]

        def run(**inputs: Any) -> Any:
            tensors = program.arguments(inputs)
            return program.rebuild(predictor.run([tensors[index] for index in order]))

        return run
