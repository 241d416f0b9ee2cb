"""Allocators: which task gets the next trials."""
