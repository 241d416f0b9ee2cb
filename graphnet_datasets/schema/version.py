"""The version of the table format."""

from __future__ import annotations

import json

SCHEMA_VERSION = 1
"""Version of the Arrow schemas of `graphs` and `runs`.

The main branch of a repository holds its newest version, a branch `v1` an older one."""


def table_metadata(table: str) -> dict[str, str]:
    """Return the metadata of a schema, which says what its rows are, and in which version.

    >>> table_metadata("graphs")
    {'graphnet_datasets': '{"table": "graphs", "schema_version": 1}'}
    """
    told = {"table": table, "schema_version": SCHEMA_VERSION}
    return {"graphnet_datasets": json.dumps(told)}
