"""Where the samples of a run are run: on this machine's devices or on a Ray cluster."""
