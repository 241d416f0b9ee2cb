"""Records of a GPU: the rows to run, the folder that a machine needs, and its script."""
