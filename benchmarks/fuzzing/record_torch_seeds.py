"""Write valid calls of torch's operators, from which the fuzzer starts: torch_seeds.jsonl.gz.

    python -m fuzzing.record_torch_seeds     (inside benchmarks/; needs the package `expecttest`)

They come out of the sample inputs that torch tests its operators with: each call, the ATen calls
that it makes, and those of its gradient.
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.frameworks.torch.operators import name_of

from .specs import Call, write_call
from .torch_values import NotPlainError, describe_call

SEEDS = Path(__file__).with_name("torch_seeds.jsonl.gz")
CALLS_PER_NAME = 6
SAMPLES_PER_OPERATOR = 24


class Recorder(TorchDispatchMode):
    """Keeps the calls of ATen."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, dict[str, Call]] = defaultdict(dict)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if isinstance(func, torch._ops.OpOverload):
            with contextlib.suppress(GraphNetError):
                self.keep(name_of(func), args, kwargs or {})
        return func(*args, **(kwargs or {}))

    def keep(self, name: str, args: Any, kwargs: dict[str, Any]) -> None:
        """Keep a call unless there are enough of that operator."""
        calls = self.found[name]
        if len(calls) >= CALLS_PER_NAME:
            return
        with contextlib.suppress(NotPlainError, AttributeError):
            call = describe_call(name, args, kwargs)
            calls.setdefault(repr(call), call)


def main() -> None:
    """Record and write."""
    from torch.testing._internal.common_methods_invocations import op_db

    warnings.simplefilter("ignore")
    recorder = Recorder()
    for info in op_db:
        for dtype in (torch.float32, torch.int64, torch.complex64):
            if dtype in info.dtypes:
                _record(info, dtype, recorder)
    with gzip.open(SEEDS, "wt", compresslevel=9) as file:
        for name in sorted(recorder.found):
            for call in recorder.found[name].values():
                file.write(write_call(call) + "\n")
    print(len(recorder.found), "operators", SEEDS.stat().st_size, "bytes")


def _record(info: Any, dtype: torch.dtype, recorder: Recorder) -> None:
    names = list(_names(info))
    with_gradient = dtype == torch.float32 and info.supports_autograd
    try:
        samples = list(
            itertools.islice(
                info.sample_inputs("cpu", dtype, requires_grad=with_gradient), SAMPLES_PER_OPERATOR
            )
        )
    except Exception:
        return
    for sample in samples:
        args = (sample.input, *sample.args)
        for name in names:
            recorder.keep(name, args, sample.kwargs)
        with contextlib.suppress(Exception), recorder:
            result = info.op(*args, **sample.kwargs)
            if with_gradient:
                given = [result] if isinstance(result, torch.Tensor) else list(result)
                total = sum(
                    each.abs().sum() for each in given if each.is_floating_point() and each.grad_fn
                )
                if isinstance(total, torch.Tensor):
                    total.backward()


def _names(info: Any) -> Iterator[str]:
    for each in (info, *info.aliases):
        for target in (each.op, each.method_variant, each.inplace_variant):
            if target is not None:
                with contextlib.suppress(GraphNetError, TypeError):
                    yield name_of(target)


if __name__ == "__main__":
    main()
