"""`extract` and `extract_export`: from a live model to samples, in memory or on disk."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .directory import write_directory
from .errors import CaptureError
from .frameworks import contract, framework_named, framework_names
from .sample import Provenance, Sample
from .sample.vocabulary import Task
from .storage.table import write_table


def extract(
    *,
    name: str,
    task: Task = "other",
    dynamic: bool = False,
    out: str | Path | None = None,
    warm_up: bool = True,
    source: str = "",
    license: str = "",
    library_version: str = "",
) -> Callable[[Any], Any]:
    """Return a decorator that captures the first call of a module as samples.

    It wraps a module or decorates a class of modules. The result behaves like the module, and
    after its first call holds one `Sample` per captured graph in `samples`: one where the module
    is traced whole, several, linked by `provenance.parent_id`, where the graph breaks. The samples
    are run on the tensors of the call, and the outputs compared with those of the module.

    `name` becomes the samples' id (`name/subgraph_0`, … where there are several). With
    `dynamic=True` the sizes of the data inputs become symbols; single dimensions are marked with
    `torch._dynamo.mark_dynamic` instead. `out` is a Parquet file if it ends in `.parquet`, and a
    directory in GraphNet's format otherwise.

    The first call runs twice: once for its outputs, and once to be traced, from the restored state
    of the module, its arguments and the random generators. Afterwards all of them are as after one
    call. `warm_up=False` also restores the caches that the module filled, which usually breaks
    graphs; the default traces with them.

    Layers of paddle are captured through `paddle.jit.to_static`, always as one graph; with
    `dynamic=True` the first dimension of the data inputs, the batch, becomes a symbol.

    Statistics of all tensors are recorded, and the elements of small integer tensors. Parameters
    on the meta device (see `without_weights`) stand in as fake tensors: the call then returns fake
    tensors, and their statistics are what their initialisers draw.

    Raises:
        CaptureError: at the first call, if the module cannot be traced, calls an operator that is
            not in the table, runs a part outside of the captured graphs, or computes something else
            than the samples.

    >>> import torch
    >>> module = extract(name="example/linear")(torch.nn.Linear(3, 2))
    >>> outputs = module(torch.ones(4, 3))
    >>> [op.target for op in module.samples[0].ops]
    ['torch.nn.functional.linear']
    """
    provenance = Provenance(source=source, license=license, library_version=library_version)
    path = None if out is None else Path(out)

    def decorate(target: Any) -> Any:
        framework_extract = _extract_of(target)
        return framework_extract(
            name=name,
            task=task,
            dynamic=dynamic,
            warm_up=warm_up,
            provenance=provenance,
            on_samples=None if path is None else functools.partial(_write, out=path),
        )(target)

    return decorate


def extract_export(
    module: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    name: str,
    task: Task = "other",
    dynamic_shapes: Any = None,
    out: str | Path | None = None,
    source: str = "",
    license: str = "",
    library_version: str = "",
) -> Sample:
    """Capture one call of `module` through `torch.export`, in ATen operators.

    `dynamic_shapes` is `torch.export.export`'s: it names the dimensions that become symbols. The
    rest is as in `extract`, except that there is always exactly one graph, and that the module, the
    arguments and the random generators are left as they were before.

    Raises:
        CaptureError: the module cannot be exported, calls an operator that is not in the table, or
            computes something else than the sample.

    >>> import torch
    >>> sample = extract_export(torch.nn.ReLU(), (torch.ones(3),), name="example/relu")
    >>> [op.target for op in sample.ops]
    ['torch.ops.aten.relu.default']
    """
    export, _ = _torch_captures()
    sample = export.extract_export(
        module,
        args,
        kwargs,
        name=name,
        task=task,
        dynamic_shapes=dynamic_shapes,
        provenance=Provenance(source=source, license=license, library_version=library_version),
    )
    if out is not None:
        _write([sample], Path(out))
    return sample


def without_weights(*, is_measured: bool = False) -> Any:
    """Return a context in which modules are built whose parameters take no memory.

    Their buffers keep their values, and each parameter remembers what its initialiser would have
    drawn, so that models of any size can be given to `extract`. With `is_measured` initialisers do
    draw, one parameter at a time, and the statistics of samples are measured.

    >>> import torch
    >>> with without_weights():
    ...     module = extract(name="example/wide")(torch.nn.Linear(20_000, 20_000))
    >>> outputs = module(torch.ones(1, 20_000))
    >>> module.samples[0].num_params
    400020000
    """
    _, initialisers = _torch_captures()
    return initialisers.without_weights(is_measured=is_measured)


def _extract_of(target: Any) -> Callable[..., Callable[[Any], Any]]:
    """Return `extract` of the framework that a module or class of modules belongs to."""
    classes = target.__mro__ if isinstance(target, type) else type(target).__mro__
    roots = {each.__module__.partition(".")[0] for each in classes}
    names = [name for name in framework_names() if framework_named(name).imported_as in roots]
    # What belongs to no framework is refused by the first of them, which says what it takes.
    name = names[0] if names else framework_names()[0]
    return contract.module(name, "extract", f"Capturing a {name} model").extract


def _torch_captures() -> tuple[Any, Any]:
    """Return the modules of the captures that torch alone has, or say that it is not installed."""
    contract.module("torch", "extract", "Capturing a torch model")
    from .frameworks.torch.capture import export, initialisers

    return export, initialisers


def _write(samples: list[Sample], out: Path) -> None:
    if out.suffix == ".parquet":
        write_table(samples, out)
    elif out.is_file():
        raise CaptureError(
            f"`{out}` is a file, so no sample directory can be written there. Choose another "
            "path, or one that ends in `.parquet`."
        )
    else:
        write_directory(samples[0] if len(samples) == 1 else samples, out)
