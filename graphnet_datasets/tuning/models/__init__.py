"""Cost models, which predict the speed of a candidate before it runs."""
