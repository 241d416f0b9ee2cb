"""Cost models: how fast a candidate will be, before it runs."""
