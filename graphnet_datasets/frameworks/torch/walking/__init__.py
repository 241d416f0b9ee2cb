"""Walks on fake tensors: checks, caches and cost estimates of a graph before it runs."""
