"""Executors that run the samples of a run on local devices or on a Ray cluster."""
