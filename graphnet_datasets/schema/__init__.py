"""Columns of the tables, their registry, and conversion between samples and rows."""

from .columns import Column, Struct, Structs, required
from .compiler_bugs import COMPILER_BUGS_SCHEMA, EXPECTED_FIELDS, ExpectedVerdict
from .from_row import sample_from_row
from .graphs import (
    ANALYSIS_COLUMNS,
    BUILD_COLUMNS,
    DERIVED_COLUMNS,
    GRAPHS_SCHEMA,
    VALIDATION_COLUMNS,
    graphs_features,
)
from .runs import ERROR_CODES, OUTPUT_FIELDS, PHASES, RUNS_SCHEMA, Reason, Status, empty_run
from .subgraphs import SUBGRAPHS_SCHEMA
from .tables import (
    ALL,
    CONFIGS,
    EXCLUDED,
    TABLES,
    TRUNCATED,
    Config,
    Table,
    config_named,
    config_of,
)
from .to_row import sample_to_row
from .version import SCHEMA_VERSION

__all__ = [
    "ALL",
    "ANALYSIS_COLUMNS",
    "BUILD_COLUMNS",
    "COMPILER_BUGS_SCHEMA",
    "CONFIGS",
    "DERIVED_COLUMNS",
    "ERROR_CODES",
    "EXCLUDED",
    "EXPECTED_FIELDS",
    "GRAPHS_SCHEMA",
    "OUTPUT_FIELDS",
    "PHASES",
    "RUNS_SCHEMA",
    "SCHEMA_VERSION",
    "SUBGRAPHS_SCHEMA",
    "TABLES",
    "TRUNCATED",
    "VALIDATION_COLUMNS",
    "Column",
    "Config",
    "ExpectedVerdict",
    "Reason",
    "Status",
    "Struct",
    "Structs",
    "Table",
    "config_named",
    "config_of",
    "empty_run",
    "graphs_features",
    "required",
    "sample_from_row",
    "sample_to_row",
]
