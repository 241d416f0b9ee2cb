"""The child side of a run: the only process in which a candidate's code runs."""
