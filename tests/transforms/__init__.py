"""Tests of samples made from samples."""
