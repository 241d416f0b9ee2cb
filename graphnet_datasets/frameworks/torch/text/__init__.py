"""Source text in GraphNet's form, to and from samples; nothing of it is executed."""
