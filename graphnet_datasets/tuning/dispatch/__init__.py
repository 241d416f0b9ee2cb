"""Dispatchers, which choose a configuration for each input."""
