"""Tests of the entries of operators."""
