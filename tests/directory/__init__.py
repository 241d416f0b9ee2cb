"""Tests of GraphNet directories."""
