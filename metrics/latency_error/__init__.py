"""The `evaluate` metric S(t)."""
