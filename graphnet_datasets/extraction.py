"""`extract` and `extract_export`: capture live models as samples, in memory or on disk."""

from __future__ import annotations

import dataclasses
import functools
import threading
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from .analysis.columns import derived_columns
from .atomic import locked
from .directory import write_directory
from .errors import CaptureError, GraphNetError, cannot_write, raises_only
from .frameworks import contract, framework_named, framework_names
from .frameworks.capturing import comes_from_model
from .sample import Provenance, Sample
from .sample.vocabulary import Task
from .schema import sample_to_row
from .storage.table import check_file, read_table, to_arrow, write_arrow

_MAX_PIECES = 9999
"""The largest piece number that is considered when the length of ids is checked."""


@raises_only(CaptureError)
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

    The decorator takes a module, a class of modules, or a function of tensors. A decorated module
    is an instance of the module's class that shares all attributes with the module; methods that
    call `forward` capture too. A decorated class captures each of its instances. After the first
    call `samples` contains one `Sample` if the module is traced as a whole, and several, linked by
    `provenance.parent_id`, if the graph breaks. The samples are run on the tensors of the call, and
    their outputs are compared with those of the module.

    `name` becomes the id of the samples: `name/subgraph_0`, … if there are several, and `name-2`,
    `name-3`, … for the second and third module that the same decorator captures. With
    `dynamic=True` the sizes of the data inputs become symbols; use `torch._dynamo.mark_dynamic` for
    single dimensions instead.

    `out` is a Parquet file if it ends in `.parquet`, and a directory in GraphNet's format
    otherwise. It receives the samples of all modules that the decorator captures. Other samples in
    a Parquet file remain; samples of the same name are replaced.

    The first call runs twice: once for its outputs, and once for tracing, after the state of the
    module, its arguments and the random generators has been restored. Afterwards their state is as
    after one call. By default the trace uses the caches that the module filled; `warm_up=False`
    restores these as well, which usually breaks graphs.

    Layers of paddle are captured through `paddle.jit.to_static`, always as one graph; with
    `dynamic=True` the first dimension of the data inputs, the batch, becomes a symbol.

    Statistics of all tensors are recorded, and the elements of small integer tensors. Parameters
    on the meta device (see `without_weights`) become fake tensors: the call then returns fake
    tensors, and their statistics are those of their initialisers.

    Raises:
        SampleError: `name` or `task` is not allowed.
        CaptureError: (at the first call) the module cannot be traced, calls an operator that is not
            in the table, runs code outside of the captured graphs, or its outputs differ from those
            of the samples; or `out` cannot be written.

    >>> import torch
    >>> module = extract(name="example/linear")(torch.nn.Linear(3, 2))
    >>> outputs = module(torch.ones(4, 3))
    >>> [op.target for op in module.samples[0].ops]
    ['torch.nn.functional.linear']
    """
    provenance = Provenance(source=source, license=license, library_version=library_version)
    _check_naming(name, task, provenance)
    record = _Record(name, None if out is None else Path(out))

    def decorate(target: Any) -> Any:
        options = {
            "name": name, "task": task, "dynamic": dynamic, "warm_up": warm_up,
            "provenance": provenance, "record": record,
        }  # fmt: skip
        if isinstance(target, types.FunctionType | types.MethodType):
            return _decorate_function(target, options)
        return _extract_of(_framework_of(target)).extract(**options)(target)

    return decorate


def _check_naming(name: str, task: Task, provenance: Provenance) -> None:
    """Raise `SampleError` if a sample cannot have this name, task or provenance."""
    for sample_id in (name, f"{name}/subgraph_{_MAX_PIECES}"):
        Sample(sample_id, "torch", task, (), (), (), provenance=provenance)


@raises_only(CaptureError, passes=comes_from_model)
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

    `dynamic_shapes` is passed to `torch.export.export`; it names the dimensions that become
    symbols. Other parameters are those of `extract`. The result is always one graph, and the state
    of the module, the arguments and the random generators does not change.

    Raises:
        CaptureError: the module cannot be exported, calls an operator that is not in the table, or
            its outputs differ from those of the sample.

    >>> import torch
    >>> sample = extract_export(torch.nn.ReLU(), (torch.ones(3),), name="example/relu")
    >>> [op.target for op in sample.ops]
    ['torch.ops.aten.relu.default']
    """
    provenance = Provenance(source=source, license=license, library_version=library_version)
    _check_naming(name, task, provenance)
    record = _Record(name, None if out is None else Path(out))
    record.check()
    export, _ = _torch_captures()
    sample = export.extract_export(
        module,
        args,
        kwargs,
        name=name,
        task=task,
        dynamic_shapes=dynamic_shapes,
        provenance=provenance,
    )
    record.name([sample])
    record.write()
    return sample


def without_weights(*, is_measured: bool = False) -> Any:
    """Return a context in which modules are built without memory for their parameters.

    Buffers keep their values, and each parameter records the distribution of its initialiser, so
    that `extract` can capture models of any size. With `is_measured`, initialisers draw their
    values, one parameter at a time, and the statistics of samples are measured.

    >>> import torch
    >>> with without_weights():
    ...     module = extract(name="example/wide")(torch.nn.Linear(20_000, 20_000))
    >>> outputs = module(torch.ones(1, 20_000))
    >>> module.samples[0].num_params
    400020000
    """
    _, initialisers = _torch_captures()
    return initialisers.without_weights(is_measured=is_measured)


def _framework_of(target: Any) -> str:
    """Return the name of the framework that a module, a class of modules or a tensor belongs to.

    For other objects, return the first framework, whose `extract` raises the error.
    """
    classes = target.__mro__ if isinstance(target, type) else type(target).__mro__
    roots = {cls.__module__.partition(".")[0] for cls in classes}
    names = [name for name in framework_names() if framework_named(name).imported_as in roots]
    return (names or framework_names())[0]


def _extract_of(framework: str) -> Any:
    """Return the module `extract` of a framework."""
    return contract.module(framework, "extract", f"Capturing a {framework} model")


def _decorate_function(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return a function that captures its first call, in the framework of its arguments."""
    provenance = options["provenance"]
    if not provenance.model_name:
        provenance = dataclasses.replace(provenance, model_name=function.__name__)
    samples: list[Sample] = []

    @functools.wraps(function)
    def capturing(*args: Any, **kwargs: Any) -> Any:
        if samples:
            return function(*args, **kwargs)
        extract = _extract_of(_framework_of_arguments((args, kwargs)))
        decorate = extract.extract(**{**options, "provenance": provenance})
        module = decorate(extract.FunctionModule(function))
        try:
            return module(*args, **kwargs)
        finally:
            samples.extend(module.samples)

    capturing.__dict__["samples"] = samples
    return capturing


def _framework_of_arguments(arguments: Any) -> str:
    """Return the framework of the first tensor or module among nested arguments."""
    pending = [arguments]
    while pending:
        argument = pending.pop()
        if isinstance(argument, Mapping):
            pending += argument.values()
        elif isinstance(argument, list | tuple):
            pending += argument
        else:
            roots = {cls.__module__.partition(".")[0] for cls in type(argument).__mro__}
            for name in framework_names():
                if framework_named(name).imported_as in roots:
                    return name
    return framework_names()[0]


def _torch_captures() -> tuple[Any, Any]:
    """Return torch's modules for export and fake weights, or raise an error without torch."""
    contract.module("torch", "extract", "Capturing a torch model")
    from .frameworks.torch.capture import export, initialisers

    return export, initialisers


class _Record:
    """The samples that one decorator captured, and the file or directory that receives them."""

    def __init__(self, name: str, path: Path | None) -> None:
        self._name = name
        self._path = path
        self._samples: list[Sample] = []
        self._names: list[str] = []
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raise `CaptureError` if the existing file at `out` cannot receive samples."""
        path = self._path
        if path is None:
            return
        if path.suffix == ".parquet":
            if path.exists():
                _check_is_table(path)
        elif path.exists() and not path.is_dir():
            raise CaptureError(
                f"`{path}` is a file, so no sample directory can be written there. Choose another "
                "path, or one that ends in `.parquet`."
            )

    def name(self, samples: list[Sample]) -> list[Sample]:
        """Rename the samples of one module so that their ids differ from earlier modules' ids."""
        with self._lock:
            number = len(self._names) + 1
            name = self._name if number == 1 else f"{self._name}-{number}"
            self._names.append(name)
            if number > 1:
                samples = [_renamed(sample, self._name, name) for sample in samples]
            self._samples += samples
        return samples

    def write(self) -> None:
        """Write the samples of all modules so far."""
        path = self._path
        if path is None:
            return
        with self._lock:
            try:
                if path.suffix == ".parquet":
                    self._write_table(path)
                else:
                    samples = self._samples
                    write_directory(samples[0] if len(samples) == 1 else samples, path)
            except OSError as error:
                raise cannot_write(path, error) from error

    def _write_table(self, path: Path) -> None:
        rows = [sample_to_row(sample, derived_columns(sample)) for sample in self._samples]
        table = to_arrow(rows)
        with locked(path.parent):
            if path.exists():
                before = read_table(path)
                own = {*self._names, *table["id"].to_pylist()}
                keys = zip(before["id"].to_pylist(), before["parent_id"].to_pylist(), strict=True)
                others = before.filter(pa.array([own.isdisjoint(key) for key in keys], pa.bool_()))
                table = pa.concat_tables([others.cast(table.schema), table])
            write_arrow(table, path)


def _renamed(sample: Sample, before: str, after: str) -> Sample:
    provenance = sample.provenance
    if provenance.parent_id == before:
        provenance = dataclasses.replace(provenance, parent_id=after)
    return dataclasses.replace(
        sample, id=after + sample.id.removeprefix(before), provenance=provenance
    )


def _check_is_table(path: Path) -> None:
    try:
        names = set(check_file(path).names)
    except GraphNetError as error:
        raise CaptureError(f"No sample can be added to `{path}`. {error}") from error
    if not {"id", "parent_id", "ops"} <= names:
        raise CaptureError(
            f"`{path}` contains a table other than `graphs`, which would be lost. Choose another "
            "path."
        )
