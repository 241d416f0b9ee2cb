"""Records of runs on disk, and the environment that they were made in."""
