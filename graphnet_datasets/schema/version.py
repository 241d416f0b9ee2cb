"""The version of the table format."""

from __future__ import annotations

import json

SCHEMA_VERSION = 1
"""Version of the Arrow schemas of `graphs` and `runs`.

The main branch of a repository has the newest version, a branch such as `v1` an older version."""


def table_metadata(table: str) -> dict[str, str]:
    """Return the metadata of a schema with the table's name and format version.

    >>> table_metadata("graphs")
    {'graphnet_datasets': '{"table": "graphs", "schema_version": 1}'}
    """
    content = {"table": table, "schema_version": SCHEMA_VERSION}
    return {"graphnet_datasets": json.dumps(content)}
