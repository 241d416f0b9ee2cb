"""The version of the table format."""

SCHEMA_VERSION = 1
"""Version of the Arrow schemas of `graphs` and `runs`.

The main branch of a repository holds its newest version, a branch `v1` an older one."""
