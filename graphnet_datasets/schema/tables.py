"""The registry of tables (kinds of rows) and configs (folders of them).

A new kind of row needs declared columns, a `Table`, and a `Config` for each folder with such rows.
Other packages register theirs by an entry point (`CONFIG_GROUP`). Writing, layout, loading,
listing, pushing and the dataset card use this registry; no other module names a table or a config.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..plugins import Registry, load_all
from ..sample.vocabulary import TASKS
from .builds import DUPLICATE_COLUMNS, FAILURE_COLUMNS
from .columns import Column, arrow_schema, later_columns
from .compiler_bugs import COMPILER_BUG_COLUMNS
from .graphs import GRAPH_COLUMNS
from .kernels import KERNEL_COLUMNS
from .problems import PROBLEM_COLUMNS, SOLUTION_COLUMNS
from .runs import RUN_COLUMNS
from .subgraphs import SUBGRAPH_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Mapping

    import datasets

ALL = "all"
"""The default config: all graphs of configs with `is_in_all`."""

EXCLUDED = "excluded"
"""The config of graphs of all tasks that failed a check. `all` leaves it out, so that they are only
loaded by name, here and with plain `datasets`."""

TRUNCATED = "truncated"
"""The config of graphs of all tasks with fewer layers than their published models. `all` leaves it
out, and no statistics include it."""


@dataclasses.dataclass(frozen=True)
class Table:
    """A kind of row.

    `rows` is the plural name of its rows. Rows are equal if their `key` is, and messages refer to a
    row by its `label`. `scalars` are the columns that a push reads from a repository and that the
    card uses; the card's table groups by `counted_by`. Rows of a split are sorted by `order`, and
    `graphnet list` shows `listed`. If `holds_samples`, rows are samples, which can be shown, run
    and transformed. `schema` and `later`, the columns that older files of this format version lack,
    follow from `columns`.
    """

    name: str
    rows: str
    columns: tuple[Column, ...] = dataclasses.field(repr=False)
    key: str
    label: str
    scalars: tuple[str, ...]
    counted_by: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    row_group_size: int = 1000
    holds_samples: bool = False
    schema: pa.Schema = dataclasses.field(init=False, repr=False, compare=False)
    later: frozenset[str] = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", arrow_schema(self.name, self.columns))
        object.__setattr__(self, "later", later_columns(self.columns))
        named = {self.key, self.label, *self.scalars, *self.order, *self.listed}
        unknown = sorted(named - set(self.schema.names))
        if unknown:
            raise ValueError(
                f"The table `{self.name}` refers to the column `{unknown[0]}`, which is not in its "
                "schema. Use columns of the schema."
            )
        if not {self.key, self.label, "schema_version", *self.counted_by} <= set(self.scalars):
            raise ValueError(
                f"`scalars` of the table `{self.name}` must hold its key, its label, "
                "`schema_version` and the columns of `counted_by`."
            )

    def features(self) -> datasets.Features:
        """Return the columns as `datasets.Features`."""
        import datasets

        return datasets.Features.from_arrow_schema(self.schema)

    def empty_scalars(self) -> pa.Table:
        """Return an empty table with the columns `scalars`."""
        return pa.schema([self.schema.field(name) for name in self.scalars]).empty_table()


@dataclasses.dataclass(frozen=True)
class Config:
    """A folder of a dataset, with a file for each shard of each split.

    The default config `all` is the union of the configs with `is_in_all`. `command` builds the
    folder, or is "" if no single command does.
    """

    name: str
    table: Table
    description: str
    is_in_all: bool = False
    command: str = ""


GRAPHS = Table(
    "graphs",
    "graphs",
    GRAPH_COLUMNS,
    key="signature_hash",
    label="id",
    scalars=(
        *("schema_version", "id", "framework", "task", "source", "license"),
        *("num_ops", "num_params", "family", "signature_hash"),
    ),
    counted_by=("framework", "source"),
    order=("num_ops", "id"),
    listed=(
        *("id", "framework", "task", "source", "kind", "family", "num_ops", "num_params", "flops"),
        *("dtype", "is_dynamic", "license"),
    ),
    # Small enough that filters skip most of a file and a row is read in milliseconds, but large
    # enough to compress repetitions between graphs.
    row_group_size=100,
    holds_samples=True,
)
SUBGRAPHS = Table(
    "subgraphs",
    "parts of graphs",
    SUBGRAPH_COLUMNS,
    key="subgraph_hash",
    label="id",
    scalars=(
        *("schema_version", "id", "framework", "task", "source", "license", "parent_id", "method"),
        *("num_ops", "num_params", "family", "subgraph_hash", "num_occurrences", "num_families"),
    ),
    counted_by=("framework", "method"),
    order=("num_ops", "id"),
    listed=(
        *("id", "framework", "task", "num_ops", "num_params", "flops", "dtype", "num_occurrences"),
        *("num_families", "method"),
    ),
    row_group_size=1000,  # rows are a hundred times smaller than whole graphs
    holds_samples=True,
)
COMPILER_BUGS = Table(
    "compiler_bugs",
    "graphs that show bugs of compilers",
    COMPILER_BUG_COLUMNS,
    key="id",  # graphs that differ only in stored elements share a signature
    label="id",
    scalars=(
        *("schema_version", "id", "framework", "task", "source", "license", "num_ops"),
        *("num_params", "family", "signature_hash", "bug_compiler", "is_verified"),
    ),
    counted_by=("framework", "bug_compiler"),
    order=("num_ops", "id"),
    listed=("id", "framework", "bug_compiler", "is_verified", "num_ops", "bug_title", "bug_url"),
    row_group_size=100,
    holds_samples=True,
)
RUNS = Table(
    "runs",
    "records of timed runs",
    RUN_COLUMNS,
    key="run_id",
    label="run_id",
    scalars=("schema_version", "run_id", "compiler", "device", "status"),
    counted_by=("compiler", "device", "status"),
    listed=(
        *("sample_id", "compiler", "device", "status", "speedup", "speedup_low", "speedup_high"),
        *("min_t", "null_t"),
    ),
)

KERNELS = Table(
    "kernels",
    "kernels that compilers generated",
    KERNEL_COLUMNS,
    key="kernel_id",
    label="kernel_id",
    scalars=(
        *("schema_version", "kernel_id", "sample_id", "compiler", "compiler_version", "language"),
        *("device", "device_name"),
    ),
    counted_by=("compiler", "language", "device"),
    order=("sample_id", "position"),
    listed=(
        *("sample_id", "compiler", "language", "entry", "operators", "num_kernels"),
        *("compile_time_s", "latency_ms"),
    ),
)

PROBLEMS = Table(
    "problems",
    "computations with workloads of real models",
    PROBLEM_COLUMNS,
    key="problem_id",
    label="problem_id",
    scalars=(
        *("schema_version", "problem_id", "category", "framework", "num_ops", "num_workloads"),
        *("num_occurrences", "split_group"),
    ),
    counted_by=("category", "framework"),
    order=("num_ops", "problem_id"),
    listed=("problem_id", "category", "num_ops", "num_workloads", "num_occurrences", "framework"),
)

SOLUTIONS = Table(
    "solutions",
    "programs for problems, with verdicts",
    SOLUTION_COLUMNS,
    key="solution_id",
    label="solution_id",
    scalars=(
        *("schema_version", "solution_id", "problem_id", "language", "license", "author"),
        *("device", "is_accepted"),
    ),
    counted_by=("language", "device"),
    order=("problem_id", "solution_id"),
    listed=("problem_id", "name", "language", "device", "is_accepted", "speedup", "author"),
)

FAILURES = Table(
    "failures",
    "entries that gave no graph",
    FAILURE_COLUMNS,
    key="id",
    label="id",
    scalars=("schema_version", "id", "task", "library", "stage", "kind"),
    counted_by=("library", "stage"),
    order=("id",),
    listed=("id", "task", "stage", "kind", "reason"),
)

DUPLICATES = Table(
    "duplicates",
    "graphs that equal others",
    DUPLICATE_COLUMNS,
    key="id",
    label="id",
    scalars=("schema_version", "id", "task", "library", "is_same_as"),
    counted_by=("library",),
    order=("id",),
    listed=("id", "task", "is_same_as"),
)

CONFIG_GROUP = "graphnet_datasets.configs"
"""The entry point group for configs of other packages; a value is a sequence of `Config`."""


def _added_configs() -> dict[str, Config]:
    return {config.name: config for configs in load_all(CONFIG_GROUP) for config in configs}


def _added_tables() -> dict[str, Table]:
    return {config.table.name: config.table for config in _added_configs().values()}


TABLES: Registry[Table] = Registry(
    {
        table.name: table
        for table in (
            *(GRAPHS, SUBGRAPHS, COMPILER_BUGS, RUNS, KERNELS, FAILURES, DUPLICATES),
            *(PROBLEMS, SOLUTIONS),
        )
    },
    _added_tables,
)
"""All tables by name."""

_CONFIGS = {
    config.name: config
    for config in (
        *(Config(task, GRAPHS, f"graphs of the task {task}", is_in_all=True) for task in TASKS),
        Config(EXCLUDED, GRAPHS, "graphs that failed a check, with the reason in `why_excluded`"),
        Config(TRUNCATED, GRAPHS, "graphs with fewer layers than their models were published with"),
        Config("sole_op", SUBGRAPHS, "every different call of an operator in the graphs"),
        Config("fusible", SUBGRAPHS, "groups that a fusing compiler would make one kernel of"),
        Config("typical", SUBGRAPHS, "sequences of operators that recur across families"),
        Config(
            "problems",
            PROBLEMS,
            "computations with at least five workloads of real models",
            command="python -m builder problems",
        ),
        Config(
            "solutions",
            SOLUTIONS,
            "programs that solve problems, as text, with verdicts",
            command="graphnet check PROBLEM FILE --out DIRECTORY",
        ),
        Config("compiler_bugs", COMPILER_BUGS, "small graphs that show known bugs of compilers"),
        Config("runs", RUNS, "records of timed runs, a row for each graph and compiler"),
        Config("kernels", KERNELS, "code that compilers generated for graphs, as text"),
        Config("failures", FAILURES, "entries of the catalogs that gave no graph, and why"),
        Config("duplicates", DUPLICATES, "captured graphs that equal others, and are left out"),
    )
}
CONFIGS: Registry[Config] = Registry(_CONFIGS, _added_configs)
"""All registered configs by name."""


def config_named(name: str) -> Config:
    """Return a config; an unregistered name is a folder of graphs that `all` includes.

    >>> config_named("runs").table.key, config_named("mine").is_in_all
    ('run_id', True)
    """
    return CONFIGS.get(name) or Config(name, GRAPHS, f"graphs of {name}", is_in_all=True)


def table_of_file(path: str) -> Table:
    """Return the table of a dataset's file, determined by its folder.

    >>> table_of_file("cv/train-0000.parquet").name
    'graphs'
    """
    return config_named(path.partition("/")[0]).table


def table_of_schema(schema: pa.Schema) -> Table:
    """Return the table whose scalars are all among a file's columns, `graphs` by default.

    >>> table_of_schema(RUNS.schema).name
    'runs'
    """
    fitting = [table for table in TABLES.values() if set(table.scalars) <= set(schema.names)]
    # Of several such tables, choose the one with the most columns in common.
    shared = {table.name: len({*table.schema.names} & {*schema.names}) for table in fitting}
    return max(fitting, key=lambda table: shared[table.name], default=GRAPHS)


def config_of(row: Mapping[str, Any]) -> str:
    """Return the config that a row of the `graphs` table belongs to.

    >>> config_of({"task": "cv"}), config_of({"task": "cv", "why_excluded": "runnable: NaN."})
    ('cv', 'excluded')
    >>> config_of({"task": "cv", "is_truncated": True})
    'truncated'
    """
    if row.get("why_excluded"):
        return EXCLUDED
    return TRUNCATED if row.get("is_truncated") else row["task"]
