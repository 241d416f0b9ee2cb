"""The `problems` and `solutions` tables: computations with workloads, and programs for them."""

from __future__ import annotations

import pyarrow as pa

from .columns import Column, Structs, required

PROBLEM_INPUT_FIELDS = (
    Column("name", pa.string(), "name of the input"),
    Column("role", pa.string(), "input, parameter, buffer, constant, symbol or scalar"),
    Column("kind", pa.string(), "float, integer, bool, complex or unknown"),
    Column("rank", pa.int32(), "number of dimensions"),
)
"""An input of all workloads of a problem. `kind` is float, integer, bool or complex."""

WORKLOAD_FIELDS = (
    Column("config", pa.string(), "config of the part"),
    Column("part_id", pa.string(), "id of the part"),
    Column("subgraph_hash", pa.string(), "`subgraph_hash` of the part"),
    Column("dtypes", pa.list_(pa.string()), "dtypes of the inputs"),
    Column(
        "shapes", pa.list_(pa.list_(pa.int64())), "shapes of the inputs at the sizes of the capture"
    ),
    Column("flops", pa.int64(), "operations of a call; null if unknown"),
    Column("bytes", pa.int64(), "bytes that every program must read and write"),
    Column(
        "eager_t",
        pa.float64(),
        "smallest t at which eager agrees with float64; null without float64",
    ),
    Column("tolerance_t", pa.float64(), "tolerance t at which a solution must be right"),
    Column("num_occurrences", pa.int64(), "number of places in the graphs"),
    Column("parents", pa.list_(pa.string()), "graphs that contain the part"),
)
"""A part of a graph as a workload of a problem. The row of the part contains its graph, which is
the reference, and the strides, statistics and symbols of the inputs."""

PROBLEM_COLUMNS = (
    required("schema_version", pa.int32(), "version of the format"),
    required(
        "problem_id", pa.string(), "names of the core operators and the first digits of `form`"
    ),
    required("category", pa.string(), "kind of computation: attention, convolution, norm, loss, …"),
    required("framework", pa.string(), "torch or paddle"),
    required("operators", pa.list_(pa.string()), "core operators in order"),
    required("num_ops", pa.int64(), "number of core operators"),
    required("num_workloads", pa.int64(), "number of workloads"),
    required(
        "num_occurrences", pa.int64(), "number of places in the graphs with one of these workloads"
    ),
    required("num_parents", pa.int64(), "number of graphs with one of these workloads"),
    required(
        "split_group",
        pa.string(),
        "group that determines the split; problems of a group have the same set of core operators",
    ),
    required(
        "parent_splits", pa.list_(pa.string()), "splits of the graphs that contain the workloads"
    ),
    required(
        "form",
        pa.string(),
        "hash of the canonical form, which is equal for all spellings and frameworks",
    ),
    required("inputs", Structs(PROBLEM_INPUT_FIELDS), "inputs of every workload, in order"),
    required(
        "attributes",
        pa.list_(pa.string()),
        "numeric arguments that differ between workloads, by name",
    ),
    required("workloads", Structs(WORKLOAD_FIELDS), "parts of graphs to be computed"),
    required("licenses", pa.list_(pa.string()), "licenses of the parts"),
)
"""A row is one computation with its workloads. It contains no program: the graph of each workload
is a row of `sole_op`, `typical` or `fusible`."""

VERDICT_FIELDS = (
    Column("part_id", pa.string(), "id of the part"),
    Column("outcome", pa.string(), "right, wrong, failed or undecidable"),
    Column("cheat", pa.string(), "cheat that the judge detected, or empty"),
    Column("min_t", pa.float64(), "smallest t at which the outputs agree with those of eager"),
    Column("tolerance_t", pa.float64(), "largest t at which the outputs count as right"),
    Column("speedup", pa.float64(), "speedup over eager"),
    Column("speedup_low", pa.float64(), "lower end of its 95 % interval"),
    Column("speedup_high", pa.float64(), "upper end of its 95 % interval"),
    Column("latency_ms", pa.float64(), "median time of a call"),
    Column(
        "share_of_bound",
        pa.float64(),
        "least time that the device's peak rates allow, divided by the time",
    ),
    Column("message", pa.string(), "error or explanation, or empty"),
)
"""The verdict on a solution for one workload."""

SOLUTION_COLUMNS = (
    required("schema_version", pa.int32(), "version of the format"),
    required(
        "solution_id",
        pa.string(),
        "SHA-256 of the problem, the source, the language, the device and the threads",
    ),
    required("problem_id", pa.string(), "`problem_id` in `problems`"),
    required("form", pa.string(), "`form` of the problem"),
    required("name", pa.string(), "name of the function or class, or of the file"),
    required("author", pa.string(), "author, as stated by whoever submitted the solution"),
    required("license", pa.string(), "license of the source"),
    required(
        "language", pa.string(), "python, cpp, cuda or tc; compiler if `source` is the name of one"
    ),
    required("source_hash", pa.string(), "SHA-256 of `source`"),
    required("source", pa.string(), "text of the file, which runs only in confined processes"),
    required("build_log", pa.string(), "output of the compiler; empty if nothing was compiled"),
    required("device", pa.string(), "cpu or cuda"),
    required("device_name", pa.string(), "name of the processor or GPU"),
    required("threads", pa.int32(), "threads of a call"),
    required("is_accepted", pa.bool_(), "whether the solution is right on all workloads"),
    Column(
        "speedup",
        pa.float64(),
        "geometric mean of the speedups over eager; null if the solution is not accepted",
    ),
    Column("speedup_low", pa.float64(), "lower end of the 95 % interval"),
    Column("speedup_high", pa.float64(), "upper end of the 95 % interval"),
    Column(
        "share_of_bound",
        pa.float64(),
        "geometric mean of the shares of the bound; null without a bound",
    ),
    required("verdicts", Structs(VERDICT_FIELDS), "verdict on each workload"),
    required("library_version", pa.string(), "version of graphnet-datasets"),
)
"""A row is a solution of a problem with the verdict of one judgement. `source` is text that this
library runs only in confined processes, and only with `trust_remote_code`."""
