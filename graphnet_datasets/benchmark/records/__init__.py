"""Run records on disk, and the environment of a run."""
