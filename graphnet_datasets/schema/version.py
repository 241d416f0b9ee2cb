"""The version of the table format."""

SCHEMA_VERSION = 1
"""Version of the Arrow schemas of `graphs` and `runs`; a branch `v1` of a repository holds it."""
