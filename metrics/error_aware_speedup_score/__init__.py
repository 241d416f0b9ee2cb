"""The `evaluate` metric ES(t)."""
