"""Tests of `graphnet_datasets.conversion`."""
