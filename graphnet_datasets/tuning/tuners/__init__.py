"""Tuners of published systems, one module per system, on the base class in `base`."""
