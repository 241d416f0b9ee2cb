"""Folders for `evaluate.load`: thin modules over `graphnet_datasets.scores`."""
