"""Hashes and other columns that are derived from a sample."""
