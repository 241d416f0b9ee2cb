"""Construction of sample inputs from the arguments of a source file and their metadata."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping

from ....sample import Input, Provenance, Symbol, Value
from ....sample.symbols import Dim, is_symbol_name
from ....sample.vocabulary import Role
from ...source_text import source_error
from ...tensor_metadata import TensorMeta

FAULT_EPS = "eps_recorded_as_zero"
"""A norm's epsilon was printed with too few decimals and recorded as 0."""

FAULT_SYMBOL = "symbol_recorded_as_placeholder"
"""A symbolic integer was recorded as 4 or 0 instead of its actual value."""

_WEIGHT_MARKS = ("_self_", "_instance_modules_", "_instance_buffers_", "_instance_parameters_")
_SCALARS = {
    "SymFloat": "float64", "float": "float64", "SymBool": "bool", "bool": "bool", "int": "int64",
}  # fmt: skip


class InputMaker:
    """Creates sample inputs from arguments, metadata and symbolic shapes."""

    def __init__(
        self,
        metadata: Mapping[str, TensorMeta],
        shapes: Mapping[str, tuple[Dim, ...]],
        symbols: tuple[Symbol, ...],
        file: str,
    ) -> None:
        self.metadata = metadata
        self.shapes = shapes
        self.symbols = {symbol.name: symbol for symbol in symbols}
        self.file = file
        self.faults: list[str] = []

    def make(self, argument: ast.arg) -> Input:
        """Return the input for an argument of `forward`.

        Raises:
            SourceError: If it has no metadata, or a symbol has no integer.
        """
        name = argument.arg
        meta = self.metadata.get(name)
        if meta is None:
            raise source_error(
                self.file,
                argument.lineno,
                f"the argument `{name[:120]}` has no class in `weight_meta.py` or `input_meta.py`",
            )
        annotation = "" if argument.annotation is None else _last_name(argument.annotation)
        if annotation == "SymInt":
            return self._symbol(argument, meta)
        if annotation in _SCALARS and meta.data is not None and meta.shape == ():
            return Input("scalar", Value(_SCALARS[annotation], ()), name, data=meta.data)
        if meta.dtype == "float64" and name.endswith("eps") and meta.data == bytes(8):
            self.faults.append(FAULT_EPS)
        return Input(
            role_of(name, annotation),
            Value(meta.dtype, self.shapes.get(name, meta.shape)),
            name,
            meta.device,
            meta.statistics,
            meta.data,
        )

    def _symbol(self, argument: ast.arg, meta: TensorMeta) -> Input:
        if meta.dtype != "int64" or meta.data is None or len(meta.data) != 8:
            raise source_error(
                self.file,
                argument.lineno,
                f"the integer `{argument.arg[:120]}` is not recorded as one int64 with data",
            )
        hint = int.from_bytes(meta.data, "little", signed=True)
        if hint in (0, 4):
            self.faults.append(FAULT_SYMBOL)
        name = argument.arg
        symbol = self.symbols.get(name)
        if not is_symbol_name(name) or (symbol is not None and symbol.hint != hint):
            name = next(
                free
                for index in range(len(self.symbols) + 1)
                if (free := f"n{index}") not in self.symbols
            )
        self.symbols.setdefault(name, Symbol(name, hint))
        return Input("symbol", Value(), name)

    def add_faults(self, provenance: Provenance) -> Provenance:
        """Add the faults found in the metadata to a provenance."""
        new_faults = [
            fault for fault in dict.fromkeys(self.faults) if fault not in provenance.faults
        ]
        if not new_faults:
            return provenance
        return dataclasses.replace(provenance, faults=(*provenance.faults, *new_faults))


def role_of(name: str, annotation: str = "") -> Role:
    """Infer an argument's role from the name that dynamo assigned.

    >>> role_of("L_self_modules_conv_parameters_weight_"), role_of("L_x_")
    ('parameter', 'input')
    """
    if "_parameters_" in name or annotation == "Parameter":
        return "parameter"
    if "_buffers_" in name:
        return "buffer"
    if name.startswith("G_") or any(mark in name for mark in _WEIGHT_MARKS):
        return "constant"
    return "input"


def _last_name(annotation: ast.expr) -> str:
    if isinstance(annotation, ast.Attribute):
        return annotation.attr
    return annotation.id if isinstance(annotation, ast.Name) else ""
