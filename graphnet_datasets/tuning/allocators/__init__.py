"""Allocators: policies that choose the task for the next trials."""
