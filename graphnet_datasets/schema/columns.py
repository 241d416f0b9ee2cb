"""Declarations of columns, from which Arrow schemas and descriptions are derived."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

import pyarrow as pa

from .version import table_metadata


@dataclasses.dataclass(frozen=True)
class Struct:
    """The type of a nested column with these fields."""

    fields: tuple[Column, ...]

    def arrow_type(self) -> pa.DataType:
        """Return the Arrow type.

        >>> Struct((Column("count", pa.int32(), "number of calls"),)).arrow_type()
        StructType(struct<count: int32>)
        """
        return pa.struct([field.arrow_field() for field in self.fields])


class Structs(Struct):
    """The type of a nested column whose values are lists of structs."""

    def arrow_type(self) -> pa.DataType:
        """Return the Arrow type.

        >>> Structs((Column("count", pa.int32(), "number of calls"),)).arrow_type()
        ListType(list<item: struct<count: int32>>)
        """
        return pa.list_(super().arrow_type())


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of a table, or a field of a nested column.

    `description` is its line in the documentation. Files of this format version may lack a column
    with `is_later`, which readers then fill with null.
    """

    name: str
    type: pa.DataType | Struct
    description: str
    is_nullable: bool = True
    is_later: bool = False

    def arrow_field(self) -> pa.Field:
        """Return the Arrow field.

        >>> Column("num_ops", pa.int64(), "number of operators").arrow_field()
        pyarrow.Field<num_ops: int64>
        """
        kind = self.type.arrow_type() if isinstance(self.type, Struct) else self.type
        return pa.field(self.name, kind, nullable=self.is_nullable)


def required(name: str, kind: pa.DataType | Struct, description: str) -> Column:
    """Return a column whose values are never null.

    >>> required("task_id", pa.string(), "hash of the workload").is_nullable
    False
    """
    return Column(name, kind, description, is_nullable=False)


def arrow_schema(table: str, columns: Iterable[Column]) -> pa.Schema:
    """Return the Arrow schema of a table, with the format version as metadata.

    >>> arrow_schema("notes", [Column("note_id", pa.string(), "name of the note")]).names
    ['note_id']
    """
    fields = [column.arrow_field() for column in columns]
    return pa.schema(fields, metadata=table_metadata(table))


def later_columns(columns: Iterable[Column]) -> frozenset[str]:
    """Return the columns that files of this format version may lack; they are read as null.

    >>> later_columns([Column("load", pa.float64(), "load average", is_later=True)])
    frozenset({'load'})
    """
    return frozenset(column.name for column in columns if column.is_later)


def describe_columns(columns: Iterable[Column], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield the dotted name, type and description of each column, followed by nested columns.

    >>> from graphnet_datasets.schema import TABLES
    >>> next(describe_columns(TABLES["graphs"].columns))[:2]
    ('id', 'string')
    """
    for column in columns:
        name, inner = f"{prefix}{column.name}", column.arrow_field().type
        is_list = pa.types.is_list(inner)
        while pa.types.is_list(inner):
            inner = inner.value_type
        type_name = "struct" if pa.types.is_struct(inner) else str(inner)
        yield name, f"list of {type_name}" if is_list else type_name, column.description
        if isinstance(column.type, Struct):
            yield from describe_columns(column.type.fields, f"{name}.")
