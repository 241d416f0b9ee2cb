"""Tests of what is derived from samples."""
