"""Compilers: the interface, the registry, and one file per compiler."""

from .base import Compiler
from .builtin import usual_compilers
from .function_source import compiler_of_object
from .options import Option, parse_options, resolve_paths
from .registry import (
    Entry,
    find_entry,
    list_entries,
    make_compiler,
    register_compiler,
    resolve_name,
)
from .sources import source_hash

__all__ = [
    "Compiler",
    "Entry",
    "Option",
    "compiler_of_object",
    "find_entry",
    "list_entries",
    "make_compiler",
    "parse_options",
    "register_compiler",
    "resolve_name",
    "resolve_paths",
    "source_hash",
    "usual_compilers",
]
