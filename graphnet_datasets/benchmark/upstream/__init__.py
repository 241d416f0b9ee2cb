"""Import of upstream GraphNet's benchmark logs."""
