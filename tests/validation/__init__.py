"""Tests of the checks on samples."""
