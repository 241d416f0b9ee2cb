"""Tests of the `evaluate` metrics."""
