"""Logs of upstream GraphNet's benchmark, read into records."""
