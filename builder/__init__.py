"""Builds datasets from catalogs of models. The package is run from a checkout and not installed."""
