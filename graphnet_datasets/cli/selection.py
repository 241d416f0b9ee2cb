"""The options that select samples, the same for all commands over samples."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from .groups import OptionGroup

if TYPE_CHECKING:
    from ..storage.filters import Filters

Dataset = Annotated[
    str, typer.Option(help="`graphnet`, `org/name` on the Hub, or a path that starts with `./`.")
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SelectionOptions(OptionGroup):
    """Filters of samples; each option is a field of `Filters`."""

    title: ClassVar[str] = "Which samples (repeated options: any of the values)"

    dataset: Dataset = "graphnet"
    name: Annotated[
        list[str] | None,
        typer.Option(help="Substring of the id, ignoring case: resnet.", metavar="TEXT"),
    ] = None
    task: Annotated[
        list[str] | None, typer.Option(help="cv, nlp, audio, multimodal, scientific or other.")
    ] = None
    subtask: Annotated[list[str] | None, typer.Option(help="detection, causal-lm, …")] = None
    tag: Annotated[
        list[str] | None, typer.Option(help="A tag: `small` samples run in milliseconds.")
    ] = None
    framework: Annotated[list[str] | None, typer.Option(help="torch or paddle.")] = None
    kind: Annotated[
        list[str] | None, typer.Option(help="graph, subgraph, joint, forward or backward.")
    ] = None
    source: Annotated[
        list[str] | None, typer.Option(help="The repository of the model's code.")
    ] = None
    family: Annotated[
        list[str] | None, typer.Option(help="A family's hash or its beginning.", metavar="HASH")
    ] = None
    found_by: Annotated[
        list[str] | None, typer.Option(help="Method that found the parts: rules, inductor, …")
    ] = None
    dtype: Annotated[
        list[str] | None, typer.Option(help="The dtype of most weights: float32, …")
    ] = None
    license: Annotated[list[str] | None, typer.Option(help="A license as recorded: MIT, …")] = None
    is_dynamic: Annotated[
        bool | None,
        typer.Option("--dynamic/--static", help="With or without symbolic dimensions."),
    ] = None
    min_ops: Annotated[int | None, typer.Option(help="At least this many operators.")] = None
    max_ops: Annotated[int | None, typer.Option(help="At most this many operators.")] = None
    min_params: Annotated[
        float | None, typer.Option(help="At least this many parameters: 1e6.")
    ] = None
    max_params: Annotated[float | None, typer.Option(help="At most this many parameters: 1e6.")] = (
        None
    )
    min_flops: Annotated[
        float | None, typer.Option(help="At least this many FLOPs of one call: 1e9.")
    ] = None
    max_flops: Annotated[
        float | None, typer.Option(help="At most this many FLOPs of one call: 1e9.")
    ] = None
    min_occurrences: Annotated[
        int | None, typer.Option(help="Parts that occur at least this often in the graphs.")
    ] = None
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most this many samples, shared by the names.")
    ] = None

    @property
    def only_framework(self) -> str:
        """The selected framework; torch if none or several are selected."""
        return self.framework[0] if self.framework and len(self.framework) == 1 else "torch"

    def filters(self) -> Filters:
        """Return the filters as an object of the library.

        Raises:
            RunError: a task, framework, kind or method does not exist, or a bound is not finite.
        """
        from ..errors import RunError
        from ..storage.filters import Filters, option_of

        values: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            name = "method" if field.name == "found_by" else field.name
            value = getattr(self, field.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise RunError(f"`{option_of(name)}` is {value}, but it must be a finite number.")
            if field.name == "dataset" or value is None:
                continue
            if isinstance(value, list):
                value = tuple(value)
            elif name.endswith("_params") and isinstance(value, float):
                value = math.ceil(value) if name.startswith("min_") else math.floor(value)
            values[name] = value
        return Filters(**values)
