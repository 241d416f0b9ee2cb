"""Dispatchers: which configuration an input gets."""
