"""Hashes and other columns derived from a sample."""
