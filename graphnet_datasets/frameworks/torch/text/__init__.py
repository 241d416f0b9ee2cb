"""Conversion between samples and source text in GraphNet's form, without executing the text."""
