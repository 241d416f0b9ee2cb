"""Tuners: what to measure next. A file for each published system; `base` is what they share."""
